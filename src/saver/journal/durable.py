"""A campaign whose every step is in a journal before anybody hears of it.

It has a journal and a campaign: the state in memory is a fold of the journal's records (`folding`). A request
(`requests`) waits for its turn, takes over what others have written, does its work, and is answered when its
records are durable (`writing`). If they cannot be written, memory is ahead of the journal: it is thrown away
and read anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from saver._jit import plainly
from saver.collect import admit
from saver.collect.campaign import Campaign
from saver.collect.decide import decide
from saver.collect.events import Event, Trial
from saver.collect.state import policies_of
from saver.errors import CampaignEnded, InvalidData, TooManyOut
from saver.journal import requests
from saver.journal.folding import Lease, Stated, Verified, verify
from saver.journal.protocol import LAST, RENEWED, STARTED, Header, Journal, Record
from saver.journal.requests import Heard, Reserved, Running, all_heard, key_of, number_of
from saver.journal.writing import Writing
from saver.play.policy import Policy
from saver.problem import checks

P = ParamSpec("P")
T = TypeVar("T")


def request(work: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """It is done in its turn, and its records are durable when it returns."""

    @functools.wraps(work)
    def asked(self: DurableCampaign, *given: P.args, **more: P.kwargs) -> T:
        return self._writing.do(functools.partial(work, self, *given, **more))

    return cast(Callable[Concatenate[Any, P], T], asked)


def answer(of: Callable[Concatenate[Campaign, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The campaign's own answer, after what others have written meanwhile."""

    @functools.wraps(of)
    def found(self: DurableCampaign, *given: P.args, **more: P.kwargs) -> T:
        with self._writing.looking() as fold:
            return of(fold.campaign, *given, **more)

    return cast(Callable[Concatenate[Any, P], T], found)


def known(of: Callable[[Campaign], T]) -> T:
    """The same for a property; to a type checker it is what it gives."""
    return cast(T, property(answer(cast(Any, of).fget)))


class DurableCampaign:
    """A `Campaign` in a store; `saver.open` makes it.

    Any number of processes may share it (mode="embedded"), or one owns it and its threads share it
    (mode="leader"). All answers of `Campaign` are here.
    """

    def __init__(
        self, journal: Journal, header: Header, stated: Stated, mode: str, lease: float | None, max_out: int
    ) -> None:
        self.header, self.mode, self.lease, self.max_out = header, mode, lease, max_out
        self._journal, self._writing = journal, Writing(journal, header, stated, mode)
        setup = self._writing.fold.setup
        self.name, self.problem, self.collector = header.name, setup.problem, setup.collector
        self.until, self.losses, self.order = setup.until, setup.losses, setup.order

    # -- requests ----------------------------------------------------------------------------------------

    def ask(self, n: int | None = None, *, key: str | None = None, start: bool = True) -> Any:
        """The next episode to run, or with `n` a list of so many; fewer where fewer are left.

        It is out, and durable, before it is handed over, and has started unless start=False: then `start`
        must be called before it is run, and it costs nothing if it never is. With a `key` the same request
        may be repeated, and gives the same trials.
        """
        many, most = 1 if n is None else checks.whole("n", n, 1), self.max_out
        if many > most:
            raise TooManyOut(f"n is {many}, and max_out is {most}; open the campaign with a larger one")
        checks.flag("start", start)
        found = self._ask(many, key_of(key), start)
        return found[0] if n is None else found

    @request
    def _ask(self, n: int, key: str | None, start: bool) -> list[Trial | Reserved]:
        on, fold = self._writing, self._writing.fold
        if key is not None and (found := on.of_key(key)) is not None:
            return requests.asked_before(on, found, n, start)
        if fold.campaign.answered:
            raise CampaignEnded(f"{fold.campaign.ended}; nothing more needs to be asked for")
        admit.may_ask(fold.setup, fold.state)
        first, out = fold.state.asked + 1, len(fold.state.out)
        given = min(n, fold.state.left(fold.setup.episodes))
        if out + given > self.max_out:
            raise TooManyOut(
                f"{out} trials are out, and {given} more are asked for; max_out is {self.max_out}: tell, "
                "abandon or cancel some, or open the campaign with a larger one"
            )
        if start:
            requests.in_order(on, first)
        numbers, more = range(first, first + given), {"until": on.until(self.lease), "started": start}
        for number in numbers:
            batch = {"n": n, "given": given} if number == first else {}
            event = decide(fold.setup, fold.state)
            on.happen(event, key=key if number == first else None, **more, **batch)
        return [requests.handed(on, number) for number in numbers]

    @request
    def start(self, trial: Trial | Reserved | int) -> Trial:
        """A trial that was asked for with start=False will run now; what `act` is asked of."""
        on, number = self._writing, number_of(trial)
        found = admit.find(on.fold.state, number, "given up; it must not run now")
        requests.in_order(on, number)
        if not on.fold.leases[number].started:
            on.write(STARTED, number, until=on.until(self.lease))
        return found

    @request
    def renew(self, trial: Trial | int) -> None:
        """A trial takes longer: its lease begins anew."""
        on, number = self._writing, number_of(trial)
        admit.find(on.fold.state, number, "given up; its lease cannot be renewed")
        requests.has_started(on, number, "renewed")
        on.write(RENEWED, number, until=on.until(self.lease))

    def tell(
        self,
        trial: Trial | int,
        states: Any,
        actions: Any = None,
        rewards: Any = None,
        constraints: Any = None,
        *,
        final_state: int | str | None = None,
        complete: bool = True,
        key: str | None = None,
    ) -> str:
        """What happened in a trial, as `Campaign.tell`; the answer says what became of it.

        "told": it counts. "again": the same was told already. "late": the trial was given up before; what
        was told is kept, and changes nothing. Something else about a trial that was told is refused.
        """
        said = complete, final_state, states, actions, rewards, constraints
        return self._tell([Heard(trial, said, key_of(key))])[0]

    def tell_all(self, told: Iterable[Sequence[Any]]) -> list[str]:
        """What happened in several trials, durable together: sooner than one by one.

        Each is (trial, states, actions, rewards, constraints), or (trial, episode). The answers are those of
        `tell`. If one is refused, none is told.
        """
        heard = all_heard(told)
        return self._tell(heard, True) if heard else []

    @request
    def _tell(self, heard: list[Heard], several: bool = False) -> list[str]:
        """All are looked at before anything happens."""
        found = []
        for i, one in enumerate(heard):
            try:
                found.append(requests.admitted(self._writing, one))
            except InvalidData as refused:
                if not several:
                    raise
                raise InvalidData(f"told[{i}], trial {number_of(one.trial)}: {refused}") from None
        for _, take_effect in found:
            take_effect()
        return [word for word, _ in found]

    @request
    def abandon(self, trial: Trial | int, ran: bool | None = None) -> None:
        """As `Campaign.abandon`; again, if it was abandoned already, it changes nothing."""
        state, number = self._writing.fold.state, number_of(trial)
        if number not in state.abandoned:
            self._writing.lose(admit.abandoned(state, number, ran))

    @request
    def cancel(self, trial: Trial | Reserved | int, *, unseen: bool = False) -> None:
        """As `Campaign.cancel`; again, if it was cancelled already, it changes nothing.

        Only a trial that was asked for with start=False, and not started, can be cancelled with unseen=True.
        """
        fold, number = self._writing.fold, number_of(trial)
        if number in fold.state.cancelled:
            return
        event = admit.cancelled(fold.setup, fold.state, number, unseen)
        if unseen and fold.leases[number].started:
            raise InvalidData(
                f"unseen is True, but trial {number} was started, and where it starts may have been seen in "
                "another process; ask with start=False what may be cancelled so, or cancel it without "
                "unseen=True"
            )
        self._writing.lose(event)

    @request
    def extend(self, episodes: int) -> None:
        """As `Campaign.extend`."""
        self._writing.happen(admit.extended(episodes))

    @contextmanager
    def trial(self, key: str | None = None) -> Iterator[Running]:
        """A trial while the block lasts: its lease is renewed, and it is abandoned unless it is told."""
        running = Running(self, self.ask(key=key))
        with running.renewing():
            try:
                yield running
            finally:
                if not running.told:
                    with suppress(InvalidData):  # the campaign was told of it, or it was cancelled
                        self.abandon(running.number)

    def expire(self) -> list[int]:
        """Give up the trials whose time is over, which every request does first; their numbers."""
        before = set(self._writing.fold.leases)
        self._writing.do(lambda: None)
        return sorted(before - set(self._writing.fold.leases))

    def snapshot(self) -> int:
        """Keep the state now, so that it opens sooner; after which record."""
        self._writing.do(self._writing.keep)
        return self.last

    # -- answers: those of the campaign ------------------------------------------------------------------

    episodes, done, answered = known(Campaign.episodes), known(Campaign.done), known(Campaign.answered)
    ended, outstanding, counts = known(Campaign.ended), known(Campaign.outstanding), known(Campaign.counts)
    budget, believed = known(Campaign.budget), known(Campaign.believed)
    believed_of = known(Campaign.believed_of)
    estimate, compare, why = answer(Campaign.estimate), answer(Campaign.compare), answer(Campaign.why)
    uncertainty, statistics = answer(Campaign.uncertainty), answer(Campaign.statistics)
    to_frame, plot, report = answer(Campaign.to_frame), answer(Campaign.plot), answer(Campaign.report)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened to the campaign itself, in order."""
        return tuple(event for record in self.records() if (event := record.event) is not None)

    @property
    def policies(self) -> dict[int, Policy]:
        """The policy of each trial by its number, as it was when it was asked."""
        with self._writing.looking() as fold, plainly(fold.setup.small):
            return policies_of(fold.setup, self.events)

    def state(self) -> dict[str, Any]:
        """The whole campaign as plain data, as `Campaign.state`."""
        with self._writing.looking("state") as fold:
            return fold.campaign.state()

    # -- and of the journal ------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The number of the last record."""
        with self._writing.looking() as fold:
            return fold.seq

    def records(self, after: int = 0, most: int | None = None) -> list[Record]:
        """What happened after record number `after`, as it is stored."""
        with self._writing.looking(fresh=False):
            checks.whole("after", after, 0, LAST)
            if most is not None:
                checks.whole("most", most, 1, LAST)
            return self._journal.records(self.header.id, after, most)

    @property
    def leases(self) -> dict[int, Lease]:
        """Those of the trials that are out."""
        with self._writing.looking() as fold:
            return dict(fold.leases)

    @property
    def given_up(self) -> dict[str, int]:
        """How many trials were abandoned, and how many never started."""
        with self._writing.looking() as fold:
            return {"abandoned": len(fold.state.abandoned), "cancelled": len(fold.state.cancelled)}

    def image(self) -> dict[str, Any]:
        """All that the records so far have made, as plain data."""
        return self._writing.fold.image()

    def verify(self) -> Verified:
        """Read everything anew, from the first record, and compare it with all that is kept of it."""
        with self._writing.looking() as fold:
            return verify(fold)

    def close(self) -> None:
        """Let go of the store; nothing is lost."""
        self._writing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._writing.gone:
            return f"DurableCampaign({self.name!r}, closed)"
        with self._writing.looking() as fold:
            return repr(fold.campaign)
