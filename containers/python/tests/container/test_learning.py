"""What a model learns from feedback, without a process."""

import logging

import pytest

from topsail.container import feedback, learning
from topsail.container.decoding import decode
from topsail.container.encoding import encode
from topsail.container.feedback import FeedbackQueue
from topsail.container.input_type import DOUBLES, STRINGS
from topsail.container.learning import Learning
from topsail.container.model import Model
from topsail.container.runner import Runner
from topsail.metrics import Registry
from topsail.optional import numpy
from topsail.protocol import payload
from topsail.protocol.constants import DType
from topsail.protocol.cursor import Cursor
from topsail.protocol.feedback import Feedback
from topsail.protocol.payload import Value


class Pupil:
    """Notes what it is told."""

    def __init__(self):
        self.told = []
        self.asked = 0

    def predict(self, xs):
        return [0.0] * len(xs)

    def correct(self, pairs, user):
        self.told.append((user, [(float(x[0]), y) for x, y in pairs]))
        if any(y == "raise" for _, y in pairs):
            raise ValueError("no idea")

    def accuracy(self):
        self.asked += 1
        return 0.75


class Desk:
    """A model at its learning, with the clock in the test's hands."""

    def __init__(self, monkeypatch, model):
        self.now = 100.0
        monkeypatch.setattr(learning.time, "monotonic", lambda: self.now)
        self.registry = Registry()
        self.queue = FeedbackQueue()
        self.model = model
        self.learning = Learning(Runner(Model(model), DOUBLES, 1), self.queue, self.registry)

    def tell(self, x, y, user=""):
        self.queue.put([feedback_on(x, y, user)])

    def learn(self):
        """Does all there is to do at once, and says how many steps that took."""
        steps = 0
        while self.learning.due_in() == 0.0:
            self.learning.step()
            steps += 1
        return steps

    def metrics(self):
        return {s.name: s.value for s in self.registry.report()}


def feedback_on(x, y, user=""):
    return Feedback([DOUBLES.value([x])], payload.decode(Cursor(memoryview(encode(y)))), user)


@pytest.fixture
def desk(monkeypatch):
    return Desk(monkeypatch, Pupil())


def test_feedback_comes_by_user_in_its_order(desk):
    for i, user in enumerate(["ann", "bob", "ann", "", "bob"]):
        desk.tell(i, i * 10, user)
    assert desk.learn() == 3
    assert desk.model.told == [("ann", [(0, 0), (2, 20)]), ("bob", [(1, 10), (4, 40)]), ("", [(3, 30)])]


def test_nothing_is_due_without_feedback(desk):
    assert desk.learning.due_in() is None
    desk.learning.step()
    assert (desk.model.told, desk.model.asked, desk.registry.changed) == ([], 0, False)


def test_a_call_gets_a_bounded_part_and_users_take_turns(desk, monkeypatch):
    monkeypatch.setattr(feedback, "_MOST_AT_ONCE", 3)
    for i in range(7):
        desk.tell(i, i, "ann")
    desk.tell(7, 7, "bob")
    desk.learn()
    assert [(user, len(pairs)) for user, pairs in desk.model.told] == [("ann", 3), ("bob", 1), ("ann", 3), ("ann", 1)]
    assert [x for user, pairs in desk.model.told if user == "ann" for x, _ in pairs] == list(range(7))


@pytest.mark.parametrize("label", [True, -3, 2.5, "cat", "1", "", {"a": [1, None]}, ["x", 2], None])
def test_labels_are_what_outputs_were(desk, label):
    desk.tell(1, label)
    desk.learn()
    [(_, [(_, got)])] = desk.model.told
    assert got == label
    assert type(got) is type(label)


if numpy:

    def test_a_vector_is_a_list():
        [value] = payload.decode(Cursor(memoryview(encode(numpy.array([[1, 2], [3, 4]], "f4")))))
        assert decode(value) == [[1.0, 2.0], [3.0, 4.0]]


def test_an_input_is_what_predict_gets(monkeypatch):
    class Reader:
        def decode(self, text):
            return int(text)

        def predict(self, xs):
            return xs

        def correct(self, pairs, user):
            self.got = pairs

    model = Reader()
    queue = FeedbackQueue()
    task = Learning(Runner(Model(model), STRINGS), queue, Registry())
    queue.put([Feedback([STRINGS.value("12")], [Value(DType.JSON, (), b"[1]")])])
    task.step()
    assert model.got == [(12, [1])]


@pytest.mark.parametrize(
    "bad",
    [
        Feedback([STRINGS.value("x")], [Value(DType.STRING, (), b"y")]),
        Feedback([DOUBLES.value([1.0, 2.0])], [Value(DType.STRING, (), b"y")]),
        Feedback([], [Value(DType.STRING, (), b"y")]),
        Feedback([DOUBLES.value([1.0])], []),
        Feedback([DOUBLES.value([1.0])], [Value(DType.STRING, (), b"\xff")]),
        Feedback([DOUBLES.value([1.0])], [Value(DType.JSON, (), b"{")]),
        Feedback([DOUBLES.value([1.0])], [Value(DType.OPAQUE, (), b"y")]),
    ],
)
def test_feedback_that_cannot_be_read_is_left_out(desk, bad):
    desk.queue.put([feedback_on(1, 1), bad, feedback_on(2, 2)])
    desk.learn()
    assert desk.model.told == [("", [(1, 1), (2, 2)])]
    assert desk.metrics()["correct_failures"] == 1


def test_a_failing_correct_is_logged_and_counted(desk, caplog):
    for _ in range(3):
        desk.tell(1, "raise")
        with caplog.at_level(logging.ERROR):
            desk.learn()
    desk.tell(2, 2)
    desk.learn()
    assert desk.model.told[-1] == ("", [(2, 2)])
    assert desk.metrics()["correct_failures"] == 3
    [record] = caplog.records
    assert record.getMessage() == "correct failed for feedback on 1 inputs"


def test_accuracy_is_asked_at_most_once_a_second_and_only_after_feedback(desk):
    desk.tell(1, 1)
    desk.learn()
    assert (desk.model.asked, desk.metrics()) == (1, {"accuracy": 0.75})
    assert desk.learning.due_in() is None
    desk.now += 0.25
    desk.tell(2, 2)
    desk.learn()
    assert desk.model.asked == 1
    assert desk.learning.due_in() == 0.75
    desk.now += 0.75
    assert desk.learn() == 1
    assert (desk.model.asked, desk.learning.due_in()) == (2, None)


@pytest.mark.parametrize(
    ("says", "failures"),
    [(float("nan"), 0), (float("inf"), 0), (None, 0), ("high", 1), (ZeroDivisionError("none seen"), 1)],
)
def test_an_accuracy_that_is_no_number_is_not_reported(desk, says, failures):
    def accuracy():
        if isinstance(says, Exception):
            raise says
        return says

    desk.learning._runner.model.accuracy = accuracy
    desk.tell(1, 1)
    desk.learn()
    assert "accuracy" not in desk.metrics()
    assert desk.metrics().get("correct_failures", 0) == failures


def test_metrics_of_the_same_names_are_the_models_own(desk):
    desk.registry.get(learning.Gauge, "correct_failures", "", {}).set(7)
    desk.registry.get(learning.Counter, "accuracy", "", {}).inc()
    desk.tell(1, "raise")
    desk.learn()
    assert desk.metrics() == {"correct_failures": 7, "accuracy": 1}


def test_a_model_without_correct_gets_none(monkeypatch):
    desk = Desk(monkeypatch, lambda xs: xs)
    desk.tell(1, 1)
    assert desk.learn() == 1
    assert desk.queue.empty
    assert desk.learning.due_in() is None
    assert not desk.registry.changed


def test_the_queue_is_bounded_and_drops_what_comes_last(desk, monkeypatch):
    monkeypatch.setattr(feedback, "_MOST_BYTES", 5 * (feedback._OVERHEAD + 8 + 8))
    for i in range(8):
        desk.tell(i, float(i))
    desk.learn()
    assert [x for _, pairs in desk.model.told for x, _ in pairs] == [0, 1, 2, 3, 4]
    assert desk.metrics()["feedback_dropped"] == 3
    desk.tell(9, 9.0)  # and has room again
    desk.learn()
    assert desk.model.told[-1] == ("", [(9, 9)])
    assert desk.metrics()["feedback_dropped"] == 3


def test_the_queue_keeps_no_message(desk):
    message = bytearray(8)
    desk.queue.put([Feedback([Value(DType.FLOAT64, (1,), memoryview(message))], [Value(DType.STRING, (), b"y")])])
    message[:] = b"\xff" * 8
    desk.learn()
    assert desk.model.told == [("", [(0, "y")])]


def test_exit_ends_the_container(desk):
    def leave(pairs, user):
        raise SystemExit(3)

    desk.learning._runner.model.correct = leave
    desk.tell(1, 1)
    with pytest.raises(SystemExit):
        desk.learn()
