"""A leader: one thread does all requests, and those that wait meanwhile become durable together."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from saver.errors import StoreFailed

MOST = 256  # requests that become durable together


class Request:
    """A request and, once that is durable, what came of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.done = work, threading.Event()
        self.found: Any = None
        self.failed: BaseException | None = None


class Owner:
    """The thread, and what waits for it."""

    def __init__(self, group: Callable[[list[Callable[[], Any]]], list[Any]]) -> None:
        self._group, self._waiting = group, queue.SimpleQueue[Request | None]()
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="leader of a campaign")
        self._thread.start()

    def do(self, work: Callable[[], Any]) -> Any:
        """Wait for it."""
        if self._closed:
            raise StoreFailed("the leader was closed; open the campaign anew")
        asked = Request(work)
        self._waiting.put(asked)
        asked.done.wait()
        if asked.failed is not None:
            raise asked.failed
        return asked.found.get()

    def close(self) -> None:
        """After what waits already."""
        self._closed = True
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            group, last = [first], False
            while len(group) < MOST and not self._waiting.empty():
                following = self._waiting.get()
                if last := following is None:
                    break
                group.append(following)
            self._answer(group)
            if last:
                break
        while not self._waiting.empty():
            if (late := self._waiting.get()) is not None:
                late.failed = StoreFailed("the leader was closed; open the campaign anew")
                late.done.set()

    def _answer(self, group: list[Request]) -> None:
        try:
            for asked, found in zip(group, self._group([asked.work for asked in group]), strict=True):
                asked.found = found
        except BaseException as cause:  # told to those who wait: this thread must go on
            for asked in group:
                asked.failed = cause
        for asked in group:
            asked.done.set()
