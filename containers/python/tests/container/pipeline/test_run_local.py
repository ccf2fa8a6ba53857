"""A pipeline in one process: the rules of the sidecar, without one."""

import random

import pytest

import topsail
from topsail import BadInput, Drop, Error, testing
from topsail.container.pipeline.local import Local
from topsail.container.settings import SettingsError
from topsail.container.signature import Signature, Tensor, value_of
from topsail.container.source import SourceError
from topsail.optional import numpy
from topsail.protocol.constants import DType
from topsail.testing import Status


class Scale:
    def predict(self, xs):
        return [x * 2 for x in xs]


def shift(xs):
    return [x + 3 for x in xs]


def plain(*stages, **options):
    p = topsail.Pipeline()
    for stage in stages:
        p.add(stage, name=f"s{len(p._stages)}", **options)
    return p


def said(results):
    """Errors and drops as their type and text, to be compared."""
    return [(type(r), str(r)) if isinstance(r, Error | BadInput | Drop) else r for r in results]


def test_the_example():
    p = topsail.Pipeline()
    p.add(Scale, workers=2)
    p.add(shift)
    assert p.run_local(range(10)) == [x * 2 + 3 for x in range(10)]
    assert p.run_local([]) == []


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, [1] * 7),
        ({"batch": 3}, [3, 3, 1]),
        ({"batch": 100}, [7]),
        ({"batch": "aimd"}, [7]),
        ({"batch": "quantile", "max_batch": 4}, [4, 3]),
    ],
)
def test_sizes_of_batches(options, sizes):
    seen = []

    def spy(xs):
        seen.append(len(xs))
        return xs

    assert plain(spy, **options).run_local(range(7)) == list(range(7))
    assert seen == sizes


def test_errors_and_drops_end_their_own_query_alone():
    def first(xs):
        return [[Error("too dark"), Drop("not today"), KeyError("k"), BadInput("odd"), x][min(x, 4)] for x in xs]

    reached = []

    def second(xs):
        reached.extend(xs)
        if 5 in xs:
            raise ValueError("5 is bad")
        return xs

    p = topsail.Pipeline()
    p.add(first, batch=8)
    p.add(second, batch=8)
    assert said(p.run_local(range(7))) == [
        (Error, "stage first: Error: too dark"),
        (Drop, "stage first: not today"),
        (Error, "stage first: KeyError: 'k'"),
        (BadInput, "stage first: odd"),
        4,
        (Error, "stage second: ValueError: 5 is bad"),
        6,
    ]
    assert sorted(set(reached)) == [4, 5, 6]


class Hooks:
    def setup(self):
        self.calls = ["setup"]
        HOOKS.append(self.calls)

    def decode(self, x):
        if x == "raise":
            raise Drop("as decode says")
        return x + "d"

    def predict(self, xs):
        if "predictd" in xs:
            raise Drop("as predict says")
        return [x + "p" for x in xs]

    def encode(self, x):
        if x == "encodedp":
            raise Drop("as encode says")
        return x + "e"

    def correct(self, pairs, user):
        raise AssertionError

    def teardown(self):
        self.calls.append("teardown")


HOOKS: list = []


def test_hooks():
    HOOKS.clear()
    assert plain(Hooks, Hooks()).run_local(["a"]) == ["adpedpe"]
    assert HOOKS == [["setup", "teardown"]] * 2


def test_drops_may_be_raised(caplog):
    results = plain(Hooks, batch=4).run_local(["raise", "predict", "encode", "x"])
    assert said(results) == [
        (Drop, "stage s0: as decode says"),
        (Drop, "stage s0: as predict says"),
        (Drop, "stage s0: as encode says"),
        "xdpe",
    ]
    assert caplog.records == []  # nothing is wrong


def test_teardown_also_when_a_later_stage_fails_to_load():
    class Broken:
        def setup(self):
            raise OSError("the weights are not there")

        def predict(self, xs):
            return xs

    HOOKS.clear()
    with pytest.raises(OSError, match="the weights are not there"):
        plain(Hooks, Broken).run_local(["a"])
    assert HOOKS == [["setup", "teardown"]]


def test_branches_and_joins():
    def double(xs):
        return [x * 2 for x in xs]

    def half(xs):
        return [Error("odd") if x % 2 else x // 2 for x in xs]

    def join(xs):
        return [tuple(x.items()) for x in xs]

    p = topsail.Pipeline()
    p.add(double)
    p.add(half, after="input", batch=2)
    p.add(join, after=[half, "input", double], batch="aimd")
    assert said(p.run_local([2, 3, 4])) == [
        (("half", 1), ("input", 2), ("double", 4)),
        (Error, "stage half: Error: odd"),
        (("half", 2), ("input", 4), ("double", 8)),
    ]


def test_a_branch_has_its_own_copy():
    def grow(xs):
        for x in xs:
            x.append("grown")
        return xs

    p = topsail.Pipeline()
    p.add(lambda xs: [[x] for x in xs], name="begin")
    p.add(grow, name="left", after="begin")
    p.add(lambda xs: xs, name="right", after="begin")
    p.add(lambda xs: [(x["left"], x["right"]) for x in xs], name="end", after=["left", "right"])
    assert p.run_local([1]) == [([1, "grown"], [1])]


def test_what_cannot_be_passed_on_or_sent_is_an_error_here_too():
    [error] = plain(lambda xs: [(y for y in ()) for _ in xs], shift).run_local([1])
    assert str(error).startswith("stage s0: TypeError: a generator cannot be passed on to the next stage")
    [error] = plain(lambda xs: [b"raw"] * len(xs)).run_local([1])
    assert str(error).startswith("stage s0: TypeError: bytes cannot be an output")
    assert plain(lambda xs: [b"raw"] * len(xs), lambda xs: [len(x) for x in xs]).run_local([1]) == [3]


def test_wrong_lengths():
    assert [str(e) for e in plain(lambda xs: []).run_local([1])] == [
        "stage s0: ValueError: predict returned 0 outputs for 1 inputs"
    ]


def test_inputs_as_clients_send_them():
    def kind(xs):
        return [type(x).__name__ for x in xs]

    array = "ndarray" if numpy else "array"
    assert plain(kind).run_local([[1, 2]]) == ["list"]
    assert plain(kind).run_local([[1, 2]], input_type="doubles") == [array]

    class Typed:
        input_type = "ints"
        predict = staticmethod(kind)

    assert plain(Typed).run_local([[1, 2]]) == [array]
    with pytest.raises(SettingsError, match="Typed takes ints, and is served with doubles"):
        plain(Typed).run_local([[1]], input_type="doubles")
    with pytest.raises(ValueError, match="is no input of type ints"):
        plain(Typed).run_local(["text"])
    p = topsail.Pipeline()
    p.add(Typed)
    p.add(lambda xs: [(x["Typed"], type(x["input"]).__name__) for x in xs], name="join", after=["Typed", "input"])
    assert p.run_local([[1]]) == [(array, array)]


def test_code_by_its_name():
    p = topsail.Pipeline()
    p.add("models:first")
    assert p.run_local([[1.5], [2]]) == [1.5, 2.0]
    p.add("nowhere:nothing")
    with pytest.raises(SourceError, match="there is no module 'nowhere'"):
        p.run_local([1])


# Any graph of stages does what its functions do.


def test_any_graph_of_stages():
    rng = random.Random(11)
    for _ in range(60):
        p, expected = random_graph(rng)
        inputs = [rng.randrange(1000) for _ in range(rng.randrange(30))]
        assert said(p.run_local(inputs)) == [expected(x) for x in inputs]


def random_graph(rng):
    """A pipeline, and what becomes of one input in it."""
    p = topsail.Pipeline()
    steps = []
    free = []
    for i in range(rng.randrange(1, 7)):
        names = ["input", *(f"s{j}" for j in range(i))]
        after = rng.sample(names, rng.randrange(1, min(4, len(names)) + 1))
        free = [n for n in free if n not in after] + [f"s{i}"]
        steps.append((f"s{i}", after, step(rng)))
    steps.append(("last", free, step(rng)))
    for name, after, one in steps:
        batch = rng.choice([None, 1, 2, 5, "aimd", "quantile"])
        p.add(lambda xs, one=one: [one(x) for x in xs], name=name, after=after, batch=batch)
    return p, lambda x: walk(steps, x)


def step(rng):
    """What a stage does to one input: a number, or for several sources a dict of them."""
    factor, bad, dull = rng.randrange(1, 9), rng.randrange(2, 40), rng.randrange(2, 40)

    def one(x):
        total = sum(x.values()) if isinstance(x, dict) else x
        if total % bad == 1:
            return Error(f"{total} is bad")
        if total % dull == 1:
            return Drop(f"{total} is dull")
        return (total * factor + 1) % 1000

    return one


def walk(steps, x):
    values = {"input": x}
    for name, after, one in steps:
        got = one({s: values[s] for s in after} if len(after) > 1 else values[after[0]])
        if isinstance(got, Error):
            return Error, f"stage {name}: Error: {got}"
        if isinstance(got, Drop):
            return Drop, f"stage {name}: {got}"
        values[name] = got
    return got


# In users' own tests.


def test_answers_as_the_gateway_sees_them():
    class Text:
        input_type = "strings"

        def warmup(self):
            return ["7"]

        def predict(self, xs):
            return [int(x) for x in xs]

    class Judge:
        def warmup(self):
            return [1, 2]

        def predict(self, xs):
            return [Drop("small") if x < 5 else topsail.Output(str(x), confidence=0.5) for x in xs]

    p = topsail.Pipeline()
    p.add(Text, batch=4)
    p.add(Judge, batch=4)
    good, small, bad = testing.run(p, ["7", "3", "x"])
    assert (good.output, good.confidence, good.status) == (7, 0.5, Status.OK)  # text that is JSON is nested
    assert (small.error, small.status) == ("stage Judge: small", Status.DROPPED)
    assert bad.error == "stage Text: ValueError: invalid literal for int() with base 10: 'x'"


def test_a_plain_model_may_drop_too():
    [answer] = testing.run(lambda xs: [Drop("too dark")], [[1.0]])
    assert (answer.status, answer.error) == (Status.DROPPED, "too dark")


IMAGES = Signature(
    (Tensor("image", "uint8", (-1, 2)), Tensor("text", "string")),
    (Tensor("score", "float64"), Tensor("words", "string", (-1,))),
)


def brightness(queries):
    return [{"sum": float(sum(map(sum, nested(q["image"])))), "pixels": 2 * len(q["image"])} for q in queries]


def nested(x):
    return x.tolist() if hasattr(x, "tolist") else x


def described(both):
    return [{"score": b["s0"]["sum"] / b["s0"]["pixels"], "words": b["input"]["text"].split()} for b in both]


def test_queries_of_a_signature_pass_by_name():
    p = topsail.Pipeline()
    p.add(brightness, name="s0")
    p.add(described, name="s1", after=["s0", "input"])
    with Local(p.stages, "tensors", signature=IMAGES) as local:
        local.load()
        query = {"image": [[1, 2], [3, 6]], "text": "a b"}
        [good, bad] = local.answer([local.query(query), [v for v in local.query(query) if v.name == "text"]])
    assert [(v.name, v.dtype) for v in good.values] == [("score", DType.FLOAT64), ("words", DType.STRING)]
    assert value_of(good.values[0]) == 3.0
    assert value_of(good.values[1]) == ["a", "b"]
    assert (bad.status, bad.message) == (
        Status.BAD_INPUT,
        "stage s0: this model takes 'image', 'text', and got 'text'",
    )


def test_outputs_that_are_not_those_of_the_signature():
    p = topsail.Pipeline()
    p.add(lambda queries: [{"score": "high"} for _ in queries], name="s0")
    with Local(p.stages, "tensors", signature=IMAGES) as local:
        local.load()
        [entry] = local.answer([local.query({"image": [[1, 2]], "text": ""})])
    assert entry.status == Status.MODEL_ERROR
    assert "the outputs are not those of the signature: missing: 'words'" in entry.message
