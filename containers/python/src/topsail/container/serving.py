"""The one call that turns a Python program into a model container."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from . import devices, settings, warned
from .container import Container
from .lifecycle import SidecarGone
from .loading import prepare
from .pipeline import Pipeline
from .runner import Runner
from .settings import Settings, SettingsError


def serve(
    model: Any,
    input_type: str | None = None,
    *,
    input_length: int | None = None,
    sidecar: str | None = None,
    name: str | None = None,
    version: str | None = None,
    token: str | None = None,
    retry_singly: bool = True,
    give_up: float = 60.0,
    health_every: float = 5.0,
    concurrency: int | None = None,
) -> None:
    """Serves a model until Topsail stops it (SIGTERM), then returns.

    `model` is a function from a list of inputs to a list of outputs of the same length, or an object or class with
    such a `predict` method and, as wanted, setup, decode, encode, warmup, health, correct, accuracy and teardown.

    A generator, async generator or coroutine function gets one input instead, and several run side by side, at most
    `concurrency`. What a generator yields are the parts of an answer, which are sent as they come.

    `input_type` is bytes, ints, floats, doubles, strings or chat; `input_length` is the number of elements, if it is
    fixed. Both, and where the sidecar is (`host:port`), come from the environment when Topsail starts the program.

    A `Pipeline` is served by processes of its own, one for each worker of each stage.

    In a process that multiprocessing has started it returns at once while the program is run again there, which is
    only for what the program defines.

    `retry_singly`: when predict raises for a batch, it is called again with each input alone, so that one bad input
    fails alone. `give_up`: seconds without a connection to the sidecar before the program ends with an error.
    `health_every`: seconds between two calls of `health`.

    It raises SystemExit with a sentence for people when there is no sidecar or when the model cannot be served.
    """
    if _run_again():
        return
    arguments: dict[str, Any] = {
        "input_type": input_type,
        "input_length": input_length,
        "sidecar": sidecar,
        "model": name,
        "version": version,
        "token": token,
        "retry_singly": retry_singly,
        "give_up": give_up,
        "health_every": health_every,
        "concurrency": concurrency,
    }
    if isinstance(model, Pipeline):
        serve_pipeline(model, **arguments)
    else:
        serve_from(lambda: model, **arguments)


def serve_chat(
    answer: Any,
    *,
    concurrency: int | None = None,
    sidecar: str | None = None,
    name: str | None = None,
    version: str | None = None,
    token: str | None = None,
    give_up: float = 60.0,
    health_every: float = 5.0,
) -> None:
    """Serves `answer(messages, **options)`, which answers chats, as serve does a model.

    It is called with the members of an OpenAI chat request: `messages`, and as keywords those others that it declares,
    like max_tokens, temperature and stop; with **options all of them but model, stream, stream_options and n. It may be
    a generator, an async generator, a coroutine or a plain function, or a class or object with such a `predict` method
    and hooks. It yields texts, which are pieces of the answer's content, or dicts, which are OpenAI deltas or chunks.
    """
    from .chat import ChatModel  # other models have no use for it

    if _run_again():
        return
    serve_from(
        lambda: ChatModel(answer),
        input_type=ChatModel.input_type,
        concurrency=concurrency,
        sidecar=sidecar,
        model=name,
        version=version,
        token=token,
        give_up=give_up,
        health_every=health_every,
    )


def _run_again() -> bool:
    """Whether multiprocessing (spawn, forkserver) is running the program again, without which it cannot find what the
    process is to call. It marks that time itself; what is called afterwards may serve."""
    process = sys.modules.get("multiprocessing.process")  # which is there then, and takes time to import
    return process is not None and getattr(process.current_process(), "_inheriting", False)


def serve_from(source: Callable[[], Any], **arguments: Any) -> None:
    """Serves what `source` returns. It is called when the sidecar knows already that a model is loading, because
    importing one may take longer than everything else."""

    def run(s: Settings) -> None:
        def load() -> Runner:
            devices.check(os.environ)
            return prepare(
                source(), s.input_type, s.input_length, s.retry_singly, s.signature, s.session, s.concurrency
            )

        Container(load, s).run()

    start(run, arguments)


def serve_pipeline(pipeline: Pipeline, **arguments: Any) -> None:
    """Serves a pipeline: as the supervisor of its workers, or as that worker of it which this process was started to
    be."""
    from .pipeline import process  # model containers have no use for it

    def run(s: Settings) -> None:
        if s.concurrency is not None:
            raise SettingsError("concurrency= is for single models: the stages of a pipeline have workers=")
        devices.check(os.environ)
        process.run(pipeline, s, os.environ)

    start(run, arguments)


def start(run: Callable[[Settings], None], arguments: dict[str, Any]) -> None:
    """Runs a container of any kind with the settings of the environment and these. It raises SystemExit with a sentence
    for people."""
    warned.show_each_once()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        run(settings.read(os.environ, **arguments))
    except (SettingsError, SidecarGone) as e:
        raise SystemExit(f"topsail: {e}") from None
