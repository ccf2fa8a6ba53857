"""The way out of a container's process."""

import pytest

from topsail.container.lifecycle import SidecarGone, Stopped, run
from topsail.container.wakeup import Wakeup


class FakeLink:
    """A link in whose close a signal comes."""

    def __init__(self, failure=None):
        self.wakeup = Wakeup()
        self.failure = failure
        self.reasons = []

    def start(self):
        pass

    def close(self, reason, patience=0.0):
        self.reasons.append(reason)
        raise Stopped


def test_a_signal_on_the_way_out_is_no_error():
    link = FakeLink()
    run(link, lambda: None, lambda: None)
    assert link.reasons == ["stopped"]


def test_a_signal_on_the_way_out_does_not_hide_why_it_ended():
    def fail():
        raise ValueError("no weights")

    link = FakeLink()
    with pytest.raises(ValueError, match="no weights"):
        run(link, lambda: None, fail)
    assert link.reasons == ["ValueError: no weights"]
    with pytest.raises(SidecarGone, match="is gone"):
        run(FakeLink("it is gone"), lambda: None, lambda: None)
