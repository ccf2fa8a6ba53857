"""Warnings of models."""

import warnings

import pytest

from topsail.container.warned import show_each_once


@pytest.fixture
def shown(monkeypatch):
    found = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_: found.append(str(message)))
    show_each_once()
    return found


def test_each_is_shown_once(shown):
    """Also where a library changes the filters, which makes Python forget what it has shown."""
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("no feature names", UserWarning, stacklevel=1)
            warnings.warn("no feature names", RuntimeWarning, stacklevel=1)
    assert shown == ["no feature names", "no feature names"]


def test_they_are_bounded(shown):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for i in range(1100):
            warnings.warn(f"query {i}", UserWarning, stacklevel=1)
    assert len(shown) == 1000
