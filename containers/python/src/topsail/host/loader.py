"""The thread that loads models and drops them, one at a time, while the main thread runs those that are there."""

from __future__ import annotations

import itertools
import logging
import sys
import threading
import time
from collections.abc import Callable

from ..orders import Lost, Order, Orders, Unload
from ..wire.announce import Announced
from ..wire.load import Load
from . import memory
from .bundles import Bundles, is_clear, why_not
from .guest import HOST_ID, Guest, Loaded, gone, name_of
from .guests import Guests

_log = logging.getLogger("topsail")
_JOIN = 1.0  # seconds that a model has to come to an end of its loading when the host is stopped
_HANGS = 60.0  # seconds after which a model that loads for nobody is given up
_WORTH = 1 << 20  # bytes of growth, from which on it matters whose they are


class Hanging(Exception):
    """The thread that loads is stuck in a model."""


class Loader:
    """`announce` is told what there is to say in answer to an order: of a version, or of the host alone."""

    def __init__(
        self, bundles: Bundles, guests: Guests, orders: Orders, announce: Callable[[Order, Announced | None], None]
    ) -> None:
        self._bundles, self._guests, self._orders, self._announce = bundles, guests, orders, announce
        self._waste = memory.Waste()
        self._ids = itertools.count(HOST_ID + 1)
        self._stopping = False
        self._at: tuple[Order, float] | None = None  # what it is at, and since when, in monotonic seconds
        self._thread = threading.Thread(target=self._run, name="topsail-loader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begins nothing more, and waits a moment for what it is at."""
        self._stopping = True
        self._orders.close()
        self._thread.join(_JOIN)

    def check(self) -> None:
        """It raises Hanging where a model has been loading for too long and the sidecar has turned away. A thread
        cannot be ended from outside, so nothing else would ever be loaded."""
        if at := self._at:
            order, began = at
            took = time.monotonic() - began
            if order.connection.broken and took > _HANGS:
                name = name_of(order.asked) if isinstance(order.asked, Load) else "what is unloaded"
                raise Hanging(f"{name} has hung for {took:.0f} s, and holds up all that is to be loaded")

    def _run(self) -> None:
        while (order := self._orders.take()) and not self._stopping:
            self._at = order, time.monotonic()
            try:
                self._follow(order)
            except Exception:  # an order that fails must not be the last one
                _log.exception("an order of the sidecar failed")
            self._at = None

    def _follow(self, order: Order) -> None:
        if isinstance(order.asked, Lost):
            self._waste.add(sum(guest.memory for guest in self._guests.close_all(order.connection)))
            self._announce(order, None)
        elif order.connection.broken:
            pass  # nobody waits for an answer, and what is loaded is dropped next
        elif isinstance(order.asked, Unload):
            self._unload(order, order.asked.id)
        else:
            self._announce(order, self._loaded(order, order.asked))

    def _loaded(self, order: Order, asked: Load) -> Announced:
        if there := self._guests.of(asked, order.connection):
            return there.announced()
        began, before = time.monotonic(), memory.resident()
        try:
            loaded, takes = self._measured(asked)
        except BaseException as e:  # the model's own code may raise anything
            reason = why_not(e)
            _log.error("%s cannot be loaded: %s", name_of(asked), reason, exc_info=not is_clear(e))
        else:
            guest = Guest(next(self._ids), asked, loaded, takes, order.connection)
            self._guests.add(guest)
            took = time.monotonic() - began
            _log.info("%s is loaded after %.2f s and takes %.1f MB", name_of(asked), took, takes / 1e6)
            return guest.announced()
        self._waste.add(memory.resident() - before)
        return gone(next(self._ids), asked, reason)

    def _measured(self, asked: Load) -> tuple[Loaded, int]:
        """The model, and the bytes that it takes: at least those of its files, because small ones are made of memory
        that the process has already. The libraries that it was the first to need are not its own, but everyone's: it
        is loaded again, to be measured without them."""
        loaded, grown, libraries = self._loaded_once(asked)
        if libraries and grown > _WORTH:
            loaded.close()
            del loaded
            self._waste.add(grown)
            loaded, grown, _ = self._loaded_once(asked)
        return loaded, max(grown, memory.size_of(self._bundles.place(asked)))

    def _loaded_once(self, asked: Load) -> tuple[Loaded, int, bool]:
        """The model, the bytes by which the process has grown, and whether it has imported what others may, too."""
        before, modules = memory.resident(), len(sys.modules)
        loaded = self._bundles.load(asked)
        memory.give_back()
        return loaded, memory.resident() - before, len(sys.modules) > modules

    def _unload(self, order: Order, id: int) -> None:
        if id == HOST_ID:
            _log.warning("the sidecar asked to unload the host itself")
            return
        guest = self._guests.close(id, order.connection)
        self._waste.add(guest.memory if guest else 0)
        self._announce(order, gone(id, guest.asked if guest else None))
