"""A pipeline as users write it, as JSON, and as the environment changes it."""

import functools
import json
import random

import pytest

import topsail
from topsail.container.pipeline import description
from topsail.container.pipeline.stage import Batching, PipelineError, Stage


class Decode:
    def predict(self, xs):
        return xs


class Rank(Decode):
    pass


def embed(xs):
    return xs


def example():
    p = topsail.Pipeline()
    p.add(Decode, workers=2, cpus=[1, 2, 3, 4], cpus_per_worker=2)
    p.add(embed, batch="aimd")
    p.add(Rank, workers=2, batch=16, batch_delay=0.002, idempotent=True)
    return p


def test_the_example():
    p = example()
    assert repr(p) == "Pipeline(Decode, embed, Rank)"
    assert p.stages == (
        Stage("Decode", ("input",), Decode, workers=2, cpus=(1, 2, 3, 4), cpus_per_worker=2),
        Stage("embed", ("Decode",), embed, batch=Batching("aimd")),
        Stage("Rank", ("embed",), Rank, workers=2, batch=Batching("fixed", 16, 2_000), idempotent=True),
    )


def test_as_json_it_is_what_the_protocol_says():
    p = example()
    p.add("shop.last:Join", after=["input", Decode, "Rank"], batch="quantile", max_batch=8, name="Last")
    assert json.loads(description.write(p.stages)) == [
        {"name": "Decode", "workers": 2, "cpus": [1, 2, 3, 4], "cpus_per_worker": 2},
        {"name": "embed", "workers": 1, "batch": {"strategy": "aimd"}},
        {
            "name": "Rank",
            "workers": 2,
            "batch": {"strategy": "fixed", "max_size": 16, "delay_micros": 2000},
            "idempotent": True,
        },
        {
            "name": "Last",
            "after": ["input", "Decode", "Rank"],
            "code": "shop.last:Join",
            "workers": 1,
            "batch": {"strategy": "quantile", "max_size": 8},
        },
    ]


def test_padded_batches():
    lists = []

    def compiled(inputs):
        lists.append(list(inputs))
        return [x * 2 for x in inputs]

    p = topsail.Pipeline()
    p.add(compiled, batch=4, batch_pad=True)
    assert json.loads(description.write(p.stages))[0]["batch"] == {"strategy": "fixed", "max_size": 4, "pad": True}
    assert p.run_local(["a", "b", "c", "d", "e"]) == ["aa", "bb", "cc", "dd", "ee"]
    assert lists == [["a", "b", "c", "d"], ["e"] * 4]
    with pytest.raises(ValueError, match="needs strategy 'fixed'"):
        p.add(compiled, name="other", batch="aimd", batch_pad=True)


@pytest.mark.parametrize(
    ("stage", "name"),
    [(embed, "embed"), (Rank, "Rank"), (Rank(), "Rank"), ("a.b:C.d", "d"), (Rank().predict, "predict")],
)
def test_names(stage, name):
    p = topsail.Pipeline()
    p.add(stage)
    assert p.stages[0].name == name


def test_sources():
    p = topsail.Pipeline()
    model = Rank()
    p.add(Decode)
    p.add(embed)
    p.add("m:f", after="input")
    p.add(model, after=Decode)
    p.add(Decode, name="Again", after=["Decode", embed, "m:f", model])
    assert [s.sources for s in p.stages] == [
        ("input",),
        ("Decode",),
        ("input",),
        ("Decode",),
        ("Decode", "embed", "f", "Rank"),
    ]
    with pytest.raises(PipelineError, match="stage 'Third': after means several stages, Decode, Again: give a name"):
        p.add(Decode, name="Third", after=Decode)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"stage": Decode}, "stage 'Decode': there is another one of this name; 'input' is that of the query's input"),
        ({"name": "input"}, "stage 'input': there is another one of this name"),
        ({"stage": lambda xs: xs}, "stage '<lambda>': use a name of 1 to 63 letters, digits, '_' or '-', beginning"),
        ({"name": "-a"}, "stage '-a': use a name"),
        ({"name": "a" * 64}, "use a name"),
        ({"name": "a\n"}, "use a name"),
        ({"name": ""}, "use a name"),
        ({"stage": functools.partial(embed), "name": "p", "workers": 0}, "workers must be between 1 and 64"),
        ({"workers": 65}, "workers must be between 1 and 64"),
        ({"workers": 1.5}, "workers: 1.5 is no whole number"),
        ({"workers": True}, "workers: True is no whole number"),
        ({"cpus": [0, 1], "cpus_per_worker": 3}, "cpus_per_worker must be between 1 and the number of cpus"),
        ({"cpus": [0, 1], "cpus_per_worker": 0}, "cpus_per_worker must be between 1 and the number of cpus"),
        ({"cpus_per_worker": 2}, "cpus_per_worker must be between 1 and the number of cpus"),
        ({"cpus": [0, -1]}, "cpus must be numbers of CPUs, from 0 on"),
        ({"cpus": 3}, "cpus is 3, which is no list of CPUs"),
        ({"cpus": ["0"]}, "cpus: '0' is no whole number"),
        ({"batch": "auto"}, "batch strategy 'auto' is unknown: use 'none', 'fixed', 'aimd' or 'quantile'"),
        ({"batch": "fixed"}, "batch strategy 'fixed' needs a size"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"batch": 65537}, "the size of a batch must be between 1 and 65536"),
        ({"batch": 2.0}, "batch: 2.0 is no whole number"),
        ({"batch": 2, "max_batch": 2}, "max_batch is for batch='aimd' and 'quantile'"),
        ({"batch": "aimd", "max_batch": 0}, "max_batch must be at least 1"),
        ({"batch_delay": -0.1}, "the delay of a batch must be between 0 and 1 s"),
        ({"batch_delay": 1.5}, "the delay of a batch must be between 0 and 1 s"),
        ({"batch_delay": float("nan")}, "the delay of a batch must be between 0 and 1 s"),
        ({"batch_delay": "1ms"}, "batch_delay is '1ms', which is no number of seconds"),
        ({"after": "Later"}, "after names 'Later', which is not a stage before it: there are 'input', 'Decode'"),
        ({"after": Rank}, "which is not a stage before it"),
        ({"after": ["Decode", Decode]}, "after names 'Decode' twice"),
        ({"after": []}, "after is empty: name at least one stage, or 'input'"),
        ({"stage": 5, "name": "five"}, "stage 'five': 5 is no model: give a function, or a class or object with"),
        ({"stage": topsail.Pipeline()}, "is no model"),
        ({"stage": "module"}, "'module' names no code: write module:name"),
        ({"stage": ":name"}, "':name' names no code: write module:name"),
    ],
)
def test_errors_come_early_and_say_what_to_do(arguments, says):
    p = topsail.Pipeline()
    p.add(Decode)
    with pytest.raises(PipelineError) as e:
        p.add(**{"stage": embed} | arguments)
    assert says in str(e.value)
    assert len(p.stages) == 1


def test_a_stage_that_feeds_nobody():
    p = example()
    p.add(Decode, name="Side", after="Decode")
    p.add(Rank, name="Last", after="Rank")
    with pytest.raises(PipelineError, match="stage 'Side' feeds no other stage: only the last one answers the query"):
        p.check()


def test_bounds():
    with pytest.raises(PipelineError, match="the pipeline has no stages: add one"):
        topsail.Pipeline().check()
    p = topsail.Pipeline()
    for i in range(32):
        p.add(embed, name=f"s{i}")
    with pytest.raises(PipelineError, match="a pipeline has at most 32 stages"):
        p.add(embed)


# From JSON.


def test_it_comes_back_from_json():
    rng = random.Random(5)
    for _ in range(200):
        text = description.write(random_pipeline(rng).stages)
        assert description.write(description.read(text).stages) == text


def random_pipeline(rng):
    p = topsail.Pipeline()
    names = ["input"]
    free = []
    for i in range(rng.randrange(1, 8)):
        after = rng.sample(names, rng.randrange(1, len(names) + 1))
        name = f"s-{i}_{rng.randrange(10)}"
        free = [n for n in free if n not in after] + [name]
        batch = rng.choice([None, rng.randrange(1, 65537), "aimd", "quantile"])
        p.add(
            f"m:f{i}",
            name=name,
            after=after if rng.random() < 0.8 else None,
            workers=rng.randrange(1, 65),
            cpus=[rng.randrange(256) for _ in range(rng.randrange(3))],
            batch=batch,
            batch_delay=rng.choice([0, 0.002, 1]),
            max_batch=rng.choice([None, 7]) if isinstance(batch, str) else None,
            idempotent=rng.random() < 0.5,
        )
        names.append(name)
    used = {s for stage in p._stages for s in stage.sources}
    p.add("m:last", after=[s.name for s in p._stages if s.name not in used])
    return p


def test_what_is_left_out_or_unknown():
    p = description.read(
        '[{"name": "a", "future": 1, "batch": {"new": 2, "delay_micros": 5}}, {"name": "b", "workers": null}]'
    )
    assert p.stages == (Stage("a", ("input",), batch=Batching(delay_micros=5)), Stage("b", ("a",)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is not valid JSON"),
        ("{}", "it is no list of stages"),
        ("[1]", "it is no list of stages"),
        ("[" * 100_000, "it is not valid JSON"),
        ("[]", "the pipeline has no stages"),
        ("[{}]", "stage '': use a name"),
        ('[{"name": 1}]', "1 cannot be name"),
        ('[{"name": "a", "workers": "2"}]', "'2' cannot be workers"),
        ('[{"name": "a", "workers": true}]', "True cannot be workers"),
        ('[{"name": "a", "workers": -1}]', "workers must be between 1 and 64"),
        ('[{"name": "a", "cpus": [0, null]}]', "None cannot be cpus"),
        ('[{"name": "a", "batch": []}]', "[] cannot be batch"),
        ('[{"name": "a", "batch": {"strategy": "fixed"}}]', "batch strategy 'fixed' needs a size"),
        ('[{"name": "a", "batch": {"delay_micros": 1.5}}]', "1.5 cannot be delay_micros"),
        ('[{"name": "a", "after": ["b"]}, {"name": "b"}]', "after names 'b', which is not a stage before it"),
        ('[{"name": "a"}, {"name": "b", "after": ["input"]}]', "stage 'a' feeds no other stage"),
    ],
)
def test_json_that_is_no_pipeline(text, says):
    with pytest.raises(PipelineError) as e:
        description.read(text)
    assert says in str(e.value)


def test_any_json_is_a_pipeline_or_refused():
    rng = random.Random(7)
    good = json.loads(description.write(random_pipeline(rng).stages))
    refused = 0
    for _ in range(3000):
        try:
            assert description.read(json.dumps(spoilt(rng, good))).stages
        except PipelineError:
            refused += 1
    assert 300 < refused < 3000


def spoilt(rng, value):
    """The same with something in it that does not belong there."""
    if rng.random() < 0.05:
        return rng.choice([None, True, -1, 0, 1 << 70, 0.5, float("nan"), "", "x", [], {}, [None], "a" * 100])
    if isinstance(value, list):
        return [spoilt(rng, v) for v in value]
    if isinstance(value, dict):
        return {k: spoilt(rng, v) for k, v in value.items()}
    return value


def test_a_pipeline_of_code():
    assert description.of_code({}) is None
    p = description.of_code({"TOPSAIL_STAGES": '[{"name": "a", "code": "m:f"}, {"name": "b", "code": "m:g"}]'})
    assert [s.code for s in p.stages] == ["m:f", "m:g"]
    with pytest.raises(PipelineError, match="stage 'b' has no code, as module:name, and no program says what it is"):
        description.of_code({"TOPSAIL_STAGES": '[{"name": "a", "code": "m:f"}, {"name": "b"}]'})


# What the environment says of a program's own pipeline.


def override(text):
    return description.override(example(), {"TOPSAIL_STAGES": text})


def test_the_environment_overrides():
    p = override(
        '[{"name": "Rank", "workers": 5, "cpus": [3], "batch": {"strategy": "none"}, "code": "x:y"},'
        ' {"name": "embed", "after": ["Rank"], "idempotent": true}]'
    )
    decode, second, rank = p.stages
    assert decode == example().stages[0]
    assert (second.served, second.sources, second.batch, second.idempotent) == (
        embed,
        ("Decode",),
        Batching("aimd"),
        True,
    )
    assert (rank.workers, rank.cpus, rank.batch, rank.idempotent) == (5, (3,), Batching("none"), True)
    assert (rank.served, rank.code) == (Rank, "")


def test_nothing_to_override():
    p = example()
    assert description.override(p, {}) is p
    assert description.override(p, {"TOPSAIL_STAGES": ""}) is p


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '[{"name": "Other"}]',
            "TOPSAIL_STAGES makes no sense: it names the stage 'Other', and the program has Decode, e",
        ),
        ('[{"name": "Rank"}, {"name": "Rank"}]', "it names the stage 'Rank' twice"),
        ('[{"name": "Rank", "workers": 99}]', "stage 'Rank': workers must be between 1 and 64"),
        ("7", "it is no list of stages"),
    ],
)
def test_overrides_that_make_no_sense(text, says):
    with pytest.raises(PipelineError) as e:
        override(text)
    assert says in str(e.value)
