"""The command line of `python -m topsail`."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import traceback
from typing import Any

from ..container import input_type, source
from ..container.loading import WarmUpFailed, prepare
from ..container.pipeline import Pipeline, description
from ..container.pipeline.local import Local
from ..container.runner import Runner
from ..container.serving import serve_from, serve_pipeline
from ..container.settings import SettingsError
from ..container.source import SourceError
from ..output import BadInput
from . import bench
from .bench import Point
from .check import Check, CheckFailed

_COMMANDS = ("run", "pipeline", "host", "check", "bench")
_CLEAR = (SettingsError, SourceError, CheckFailed, WarmUpFailed, BadInput, bench.BenchFailed)

_GIVE_UP: dict[str, Any] = {
    "type": float,
    "default": 60.0,
    "metavar": "SECONDS",
    "help": "end when there is no sidecar for this",
}


def main(arguments: list[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] not in _COMMANDS and not words[0].startswith("-"):
        words.insert(0, "run")  # `python -m topsail module:object` is what a model's command says
    options = _parser().parse_args(words)
    try:
        source.enter(options.chdir)
        code: int = options.command(options)
        return code
    except _CLEAR as e:
        print(f"topsail: {e}", file=sys.stderr)
        return 1
    except Exception as e:  # the model's own: the traceback is for its author, the sentence for everyone
        traceback.print_exc()
        print(f"topsail: {options.model} failed: {type(e).__name__}: {e}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m topsail", description="Serve a Python model with Topsail.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = _command(commands, "run", "serve a model; the word may be left out (Topsail starts this)", _run)
    _add_serving(run)
    run.add_argument("--concurrency", type=int, metavar="N", help="queries that run side by side at most")
    pipeline = _command(
        commands, "pipeline", "serve the pipeline of TOPSAIL_STAGES, or a topsail.Pipeline", _pipeline, nargs="?"
    )
    _add_serving(pipeline)
    _add_host(commands)
    check = _command(commands, "check", "load a model, try it, and say what is wrong", _check)
    _add_example(check)
    sweep = _command(commands, "bench", "time batches of 1, 2, 4, ... inputs", _bench)
    _add_example(sweep)
    sweep.add_argument("--max", type=int, default=256, metavar="SIZE", help="the largest batch (default 256)")
    sweep.add_argument("--seconds", type=float, default=0.3, help="for each size (default 0.3)")
    sweep.add_argument("--json", action="store_true", help="print JSON, times in microseconds")
    return parser


def _command(commands: Any, name: str, help: str, do: Any, nargs: str | None = None) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    command.add_argument(
        "model", nargs=nargs, help="module:object or path/to/file.py:object; a function, class, object or pipeline"
    )
    command.add_argument(
        "--input-type", type=_input_type, metavar="TYPE", help="bytes, ints, floats, doubles, strings or chat"
    )
    command.add_argument("--input-length", type=int, metavar="N", help="elements of every input")
    command.add_argument("--chdir", metavar="DIR", help="work in this folder")
    command.set_defaults(command=do)
    return command


def _add_host(commands: Any) -> None:
    text = "serve many bundles in one process, loaded and unloaded as the sidecar asks (Topsail starts this)"
    host: argparse.ArgumentParser = commands.add_parser("host", help=text, description=text)
    host.add_argument("--models", metavar="DIR", help="the folder of unpacked bundles (default TOPSAIL_MODELS_DIR)")
    host.add_argument("--give-up", **_GIVE_UP)
    host.set_defaults(command=_host, chdir=None, model="the host")


def _add_serving(command: argparse.ArgumentParser) -> None:
    command.add_argument("--no-retry-singly", action="store_true", help="when a batch fails, all its inputs fail")
    command.add_argument("--give-up", **_GIVE_UP)


def _add_example(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--example", type=_example, action="append", default=[], metavar="JSON", help="an input as a client sends it"
    )


def _input_type(text: str) -> str:
    try:
        return input_type.parse(text).name
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


def _example(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not JSON ({e}): write [1.0, 2.0], or '\"text\"' with its quotes"
        ) from None


def _run(options: argparse.Namespace) -> int:
    serve_from(lambda: _model(options.model), concurrency=options.concurrency, **_serving(options))
    return 0


def _model(name: str) -> Any:
    found = source.find(name)
    if isinstance(found, Pipeline):
        raise SourceError(f"{name} is a pipeline: serve it with python -m topsail pipeline {name}")
    return found


def _pipeline(options: argparse.Namespace) -> int:
    serve_pipeline(_described(options.model), **_serving(options))
    return 0


def _described(name: str | None) -> Pipeline:
    """The pipeline of the environment, or that of a program."""
    if name:
        found = source.find(name)
        if not isinstance(found, Pipeline):
            raise SourceError(f"{name} is no topsail.Pipeline: serve it with python -m topsail {name}")
        return found
    if pipeline := description.of_code(os.environ):
        return pipeline
    raise SourceError(
        f"{description.VARIABLE} is not set: Topsail sets it for a model that has stages; else name a pipeline, "
        "as module:object"
    )


def _host(options: argparse.Namespace) -> int:
    from ..host.serving import serve_host  # other containers have no use for it

    serve_host(options.models, give_up=options.give_up)
    return 0


def _serving(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "input_type": options.input_type,
        "input_length": options.input_length,
        "retry_singly": not options.no_retry_singly,
        "give_up": options.give_up,
    }


def _check(options: argparse.Namespace) -> int:
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(message)s")
    check = Check()
    found = source.find(options.model)
    run = check.run_pipeline if isinstance(found, Pipeline) else check.run
    try:
        run(found, options.input_type, options.input_length, options.example)
    finally:
        if check.rows:
            print(check.table(), flush=True)
    print("all is well")
    return 0


def _bench(options: argparse.Namespace) -> int:
    found = source.find(options.model)
    points = _points_of_stages(found, options) if isinstance(found, Pipeline) else _points(found, options)
    print(json.dumps([p.json() for p in points]) if options.json else bench.as_table(points))
    return 0


def _points(served: Any, options: argparse.Namespace) -> list[Point]:
    runner = prepare(served, options.input_type, options.input_length)
    try:
        return list(bench.sweep(runner, _examples(runner, options), options.max, options.seconds))
    finally:
        runner.teardown()


def _points_of_stages(pipeline: Pipeline, options: argparse.Namespace) -> list[Point]:
    with Local(pipeline.stages, options.input_type, options.input_length) as local:
        local.load()
        examples = _examples(local.runners[local.stages[0].name], options)
        return list(bench.sweep_stages(local, examples, options.max, options.seconds))


def _examples(runner: Runner, options: argparse.Namespace) -> list[Any]:
    examples: list[Any] = options.example or runner.model.warmup()
    if not examples:
        raise CheckFailed("there is nothing to send: give --example '[1.0, 2.0]', or the model a warmup method")
    return examples
