"""A leader's requests: one of the threads that wait does them all, and they become durable together.

The lead goes on before that: the next group is worked out while this one goes to the disk.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from saver._interrupt import postponed
from saver.errors import StoreFailed

MOST = 256  # requests that become durable together
GATHER = 0.001  # seconds for which as many as before are waited for


class Request:
    """A request and, once that is durable, what came of it."""

    __slots__ = ("done", "failed", "found", "leads", "ready", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.done, self.leads = work, False, False
        self.ready = threading.Lock()  # free when it is done, or has the lead
        self.ready.acquire()
        self.found: Any = None
        self.failed: BaseException | None = None

    def get(self) -> Any:
        """It, or the error."""
        if self.failed is not None:
            raise self.failed
        return self.found.get()


class Turns:
    """Threads take turns to lead: no thread of its own has to be woken for each request.

    Who is answered comes back soon with the next request, so a new leader waits a moment for as many as the
    last group had: a commit takes as long for one as for all.
    """

    def __init__(
        self,
        group: Callable[[list[Callable[[], Any]]], list[Any]],
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        self._group, self._flush, self._waiting = group, flush, deque[Request]()
        self._mutex, self._led, self._closed, self._last = threading.Lock(), False, False, 1
        self._gathering, self._enough = False, threading.Lock()  # free when as many as before have come
        self._enough.acquire()

    def do(self, work: Callable[[], Any]) -> Any:
        """It is done, and durable, when this returns."""
        asked = Request(work)
        with self._mutex:
            self._waiting.append(asked)
            if not self._led:
                self._led = asked.leads = True
            elif self._gathering and len(self._waiting) >= self._last:
                self._gathering = False
                self._enough.release()
        try:
            if not asked.leads:
                asked.ready.acquire()
            while not asked.done:
                self._answer(asked)
        finally:
            self._hand_over(asked)
        return asked.get()

    def close(self) -> None:
        """What was asked for before is done."""
        self.do(self._close)

    def _close(self) -> Any:
        self._closed = True

    def _hand_over(self, asked: Request) -> None:
        """The lead goes to the first that waits; a request that was interrupted waits no longer."""
        with self._mutex:
            if not asked.done and asked in self._waiting:
                self._waiting.remove(asked)
            if asked.leads:
                asked.leads, self._led, self._gathering = False, bool(self._waiting), False
                self._enough.acquire(blocking=False)  # nobody waits for it who was interrupted
                if self._waiting:
                    self._waiting[0].leads = True
                    self._waiting[0].ready.release()

    def _answer(self, leader: Request) -> None:
        """All that wait now. Ctrl-C comes after them: it is for one thread, and others wait for this one."""
        self._gather()
        with self._mutex:
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST))]
        self._last = len(group)
        with postponed(lambda: None):
            try:
                self._do_all(group)
                self._hand_over(leader)
                self._flush()
            except Exception as cause:  # told to all of them
                for asked in group:
                    asked.failed = cause
            except BaseException:
                for asked in group:
                    asked.failed = StoreFailed(
                        "the leader was interrupted, before or after it was done; call again, with the same "
                        "key if there was one"
                    )
                raise
            finally:
                for asked in group:
                    asked.done = True
                    if asked is not leader:
                        asked.ready.release()

    def _gather(self) -> None:
        """Wait a moment for as many as before; who comes last says so: a short sleep may take long."""
        with self._mutex:
            self._gathering = too_few = len(self._waiting) < self._last
        if too_few:
            came = self._enough.acquire(timeout=GATHER)
            with self._mutex:
                if not came and not self._gathering:  # just now
                    self._enough.acquire()
                self._gathering = False

    def _do_all(self, group: list[Request]) -> None:
        if self._closed:
            raise StoreFailed("the leader was closed; open the campaign anew")
        for asked, found in zip(group, self._group([one.work for one in group]), strict=True):
            asked.found = found
