"""Asks apps, says how good the answers were, and manages what there is."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from . import requests
from .admin.connection import Admin
from .admin.resources import Resources
from .answers import Learned, Prediction
from .blocking import connect, finished, sleep
from .channel import Channel
from .clipper import ClipperNames
from .connections import Connections
from .items import Items
from .parts import Parts
from .requests import Feedback
from .target import Target, targets

_MOST_IDLE = 64  # connections


class Client(Resources, ClipperNames):
    """A gateway and a management service, with connections that are kept. It may be used from many threads at once.

        with topsail.Client("http://127.0.0.1:1337") as client:
            client.predict("wine", [14.23, 1.71, ...]).output
            client.versions.scale("wine-forest", "1", 4)

    `url` is the gateway, and `admin_url` the management service; without them TOPSAIL_URL and TOPSAIL_ADMIN_URL say
    where they are, else both are on this machine. `key`, or TOPSAIL_API_KEY, or what the file
    that TOPSAIL_API_KEY_FILE names holds, is shown to both.

    `ca_file` names the authorities of their certificates, else those of the system count; `verify=False` trusts
    any server, and an ssl.SSLContext of your own can do more, as client certificates.

    `timeout` is the seconds that a call may take, all its attempts together; each call can have its own. The gateway
    is told, so that its answer, if only the default, comes before them. Calls that fail to connect, or that a gateway
    refuses because it cannot serve now, are repeated meanwhile where that does no harm.
    """

    _given, _parts = staticmethod(finished), Parts  # what calls return; those of AsyncClient are the same

    def __init__(
        self,
        url: str | None = None,
        *,
        admin_url: str | None = None,
        key: str | None = None,
        timeout: float = 10.0,
        ca_file: str | None = None,
        verify: bool | ssl.SSLContext = True,
    ) -> None:
        gateway, management = targets(url, admin_url, key, timeout, ca_file, verify)
        self._gateway, self._management = _channel(gateway), _channel(management)
        super().__init__(Admin(self._management, finished, Items))

    def predict(
        self,
        app: str,
        input: Any,
        *,
        user: str | int | None = None,
        context: str | int | None = None,
        version: str | None = None,
        candidate_models: Sequence[str] | None = None,
        explain: bool = False,
        salt: str | int | None = None,
        no_cache: bool = False,
        priority: int | None = None,
        timeout: float | None = None,
    ) -> Prediction:
        """The answer to one input: numbers (a list, an array), a str or bytes, as the app takes it.

        The app's default output is an answer too: `Prediction.default` says so, and nothing is raised. `version` asks
        for a version of the linked model other than the serving one; the policy chooses among `candidate_models` only,
        such as "forest" or "forest:2"; queries of different `salt` never share a cached answer. `priority` is a lower
        one than the app's, up to 3; the highest is 0.
        """
        options: dict[str, Any] = {"uid": user, "context": context, "version": version, "salt": salt}
        options |= {"explain": explain or None, "no_cache": no_cache or None, "priority": priority}
        options |= {"candidate_models": candidate_models}
        return self._given(self._gateway.send(requests.predict(app, input, options), timeout))

    def stream(
        self,
        app: str,
        input: Any,
        *,
        user: str | int | None = None,
        context: str | int | None = None,
        version: str | None = None,
        candidate_models: Sequence[str] | None = None,
        explain: bool = False,
        salt: str | int | None = None,
        no_cache: bool = False,
        priority: int | None = None,
        timeout: float | None = None,
    ) -> Parts:
        """The answer to one input in parts, as the model makes them: `for part in client.stream("chat", "hello")`.

        An iterator over the outputs of the parts. After the last, its `answer` is what `predict` returns; a default
        output is an answer without parts. `timeout` is the seconds until the first part, and then between two. Once a
        part has come nothing is repeated, and an answer that ends early raises AnswerCut. Close it, use `with`, or
        leave the loop to cancel the query.
        """
        options: dict[str, Any] = {"uid": user, "context": context, "version": version, "salt": salt}
        options |= {"explain": explain or None, "no_cache": no_cache or None, "priority": priority}
        options |= {"candidate_models": candidate_models}
        return self._parts(self._gateway.parts(requests.predict(app, input, options), timeout))

    def predict_batch(
        self,
        app: str,
        inputs: Iterable[Any],
        *,
        user: str | int | None = None,
        context: str | int | None = None,
        version: str | None = None,
        candidate_models: Sequence[str] | None = None,
        explain: bool = False,
        salt: str | int | None = None,
        no_cache: bool = False,
        priority: int | None = None,
        timeout: float | None = None,
    ) -> list[Prediction]:
        """The answers to many inputs, in their order; the rows of a two-dimensional array are inputs. The gateway
        bounds how many it takes in one request."""
        options: dict[str, Any] = {"uid": user, "context": context, "version": version, "salt": salt}
        options |= {"explain": explain or None, "no_cache": no_cache or None, "priority": priority}
        options |= {"candidate_models": candidate_models}
        return self._given(self._gateway.send(requests.predict_batch(app, inputs, options), timeout))

    def feedback(
        self,
        app: str,
        label: Any = None,
        *,
        reward: float | None = None,
        query_id: int | None = None,
        input: Any = None,
        user: str | int | None = None,
        context: str | int | None = None,
        feedback_id: str | int | None = None,
        timeout: float | None = None,
    ) -> Learned:
        """Says what would have been right (`label`) or how good the answer was (`reward`, 0 to 1).

        The answer meant is that with `query_id`, or the newest to this user's `input`. Feedback of one `feedback_id`
        counts once, however often it is sent. What may have been heard is repeated only with one of the two ids.
        """
        item = {"label": label, "reward": reward, "query_id": query_id, "feedback_id": feedback_id}
        item |= {"input": input, "user": user, "context": context}
        return self._given(self._gateway.send(requests.feedback(app, item), timeout))

    def feedback_batch(self, app: str, items: Iterable[Feedback], *, timeout: float | None = None) -> list[Learned]:
        """Many pieces of feedback, dicts with the arguments of `feedback`. One bad piece refuses all."""
        return self._given(self._gateway.send(requests.feedback_batch(app, items), timeout))

    def health(self, *, timeout: float | None = None) -> bool:
        """Whether new queries should go to this gateway; False while it stops. It raises if there is none."""
        return self._given(self._gateway.send_once(requests.health(), timeout))

    @property
    def url(self) -> str:
        """Of the gateway."""
        return str(self._gateway).rstrip("/")

    def close(self) -> None:
        """Closes the idle connections. Calls that come later open new ones."""
        finished(self._gateway.close())
        finished(self._management.close())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"topsail.Client({str(self._gateway)!r})"


def _channel(target: Target) -> Channel:
    dial = partial(connect, target.host, target.port, target.tls)
    return Channel(target, Connections(target.url, target.shown, dial, _MOST_IDLE), sleep)
