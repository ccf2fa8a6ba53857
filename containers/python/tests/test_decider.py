"""What a Decider makes of what the gateway sends, and sends back."""

import json

import pytest

import topsail
from topsail.decider import Answer, Candidate

SELECT = {
    "op": "select",
    "app": "app",
    "state": {"n": 1},
    "user": "ann",
    "context": "night",
    "input": [1.0],
    "budget_micros": 100000,
    "candidates": [
        {"model": "a", "version": "1", "ready": True, "cost": 3, "median_micros": 1000, "p95_micros": 3000},
        {"model": "b", "version": "2", "ready": True, "cost": 2, "median_micros": 0, "p95_micros": 0},
        {"model": "c", "version": "1", "ready": False, "cost": 1, "median_micros": 0, "p95_micros": 0},
    ],
}
ON_ITS_WAY = {"app": "app", "state": None, "elapsed_micros": 2500, "left_micros": 97500, "awaited": [], "next": []}


def answer(model, output, new=True, **fields):
    return {"model": model, "version": "1", "output": output, "after_micros": 1500, "new": new, **fields}


def say(decider, told):
    [said] = decider.predict([json.dumps(told)])
    return said


class Careful(topsail.Decider):
    """Keeps what it was told, and finishes with what is sure."""

    def __init__(self):
        self.told = []

    def select(self, query):
        self.told.append(query)
        return self.ask(sorted(query.candidates, key=lambda c: c.cost), first=1)

    def answer(self, query, answer):
        self.told.append((query, answer))
        if answer.failure:
            return self.next()
        return self.finish(answer) if (answer.confidence or 0) >= 0.9 else self.wait(0.005)


def test_by_default_all_that_are_ready_are_called_and_the_surest_answers():
    plain = topsail.Decider()
    assert say(plain, SELECT) == {"ask": ["a:1", "b:2"], "first": 0, "answers": False}
    answers = [
        answer("a", 1, confidence=0.5),
        answer("b", 2, confidence=0.7),
        {"model": "c", "version": "1", "failure": "no"},
    ]
    assert say(plain, {**ON_ITS_WAY, "op": "combine", "answers": answers}) == {"model": "b:1", "confidence": 0.7}
    assert say(plain, {**ON_ITS_WAY, "op": "combine", "answers": answers[2:]}) == {}


def test_it_is_told_all_that_the_gateway_knows():
    careful = Careful()
    assert say(careful, SELECT) == {"ask": ["c:1", "b:2", "a:1"], "first": 1, "answers": True}
    [query] = careful.told
    assert (query.app, query.state, query.user, query.context, query.input) == ("app", {"n": 1}, "ann", "night", [1.0])
    assert (query.left, query.candidates[0]) == (0.1, Candidate("a", "1", True, 3, 0.001, 0.003))

    told = {**ON_ITS_WAY, "op": "answer", "answers": [answer("a", 7, confidence=0.2, qualifiers={"q": 1})]}
    told |= {"awaited": [{"model": "b", "version": "2"}], "next": [{"model": "c", "version": "1"}]}
    assert say(careful, told) == {"wait_micros": 5000}
    query, one = careful.told[1]
    assert one == Answer("a", "1", 7, confidence=0.2, qualifiers={"q": 1}, after=0.0015)
    assert (query.elapsed, query.left, query.answers) == (0.0025, 0.0975, [one])
    assert ([c.model for c in query.awaited], [c.model for c in query.reserve]) == (["b"], ["c"])


@pytest.mark.parametrize(
    ("answers", "want", "times"),
    [
        ([answer("a", 7, confidence=0.95)], {"model": "a:1", "confidence": 0.95}, 1),
        ([answer("a", None, failure="no")], {"next": 1}, 1),
        ([answer("a", 7, new=False), answer("b", 8, confidence=0.9)], {"model": "b:1", "confidence": 0.9}, 1),
        ([answer("a", 7, confidence=0.9), answer("b", 8)], {"model": "a:1", "confidence": 0.9}, 1),
        ([answer("a", 7), answer("b", 8, failure="no")], {"next": 1}, 2),
        ([answer("a", 7, new=False), answer("b", 8, new=False)], {"wait_micros": 5000}, 1),  # its wait is over
        ([], {}, 0),
    ],
)
def test_it_decides_as_answers_come(answers, want, times):
    careful = Careful()
    assert say(careful, {**ON_ITS_WAY, "op": "answer", "answers": answers}) == want
    assert len(careful.told) == times


def test_it_learns():
    class Counts(topsail.Decider):
        def train(self, query, label, loss):
            right = [a.model for a in query.answers if a.loss == 0]
            return {"n": query.state["n"] + 1, "right": right, "label": label, "loss": loss}

    answers = [answer("a", 1, loss=0), answer("b", 2, loss=1), answer("c", 2)]
    told = {"op": "train", "app": "app", "state": {"n": 1}, "feedback": {"label": "x", "loss": 0.5, "answers": answers}}
    assert say(Counts(), told) == {"state": {"n": 2, "right": ["a"], "label": "x", "loss": 0.5}}


def test_one_that_fails_leaves_the_others_alone():
    class Broken(topsail.Decider):
        def select(self, query):
            if query.user == "ann":
                raise RuntimeError("out of order")
            return self.ask(["b"])

    of_ann, of_bob = Broken().predict([json.dumps(SELECT), json.dumps({**SELECT, "user": "bob"})])
    assert isinstance(of_ann, RuntimeError)
    assert of_bob["ask"] == ["b"]
    assert "install a newer one" in str(say(topsail.Decider(), {"op": "guess", "app": "app"}))
    assert topsail.Decider().finish([1, 2]) == {"output": [1, 2]}
    assert topsail.Decider().wait() == {}
