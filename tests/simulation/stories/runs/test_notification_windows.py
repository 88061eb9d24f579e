"""The windows of a notification, explored whole: the code of events and of ends, call by call in
every order, with a crash before any call, or a failing send. Nothing is lost; without either
nothing is told twice."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from carillon.domain.activity.results import Result
from carillon.domain.events import Event, EventType
from carillon.domain.message import Message
from carillon.domain.notifying import window as windows
from carillon.domain.notifying.notification import Notification, Told, channel_text
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.domain.targets import WebhookTarget
from carillon.errors import QueueUnavailableError
from carillon.executor.notifying.notifier import Notifier
from carillon.executor.notifying.orders import WindowOrders
from carillon.executor.notifying.window_end import WindowEnd
from carillon.services.notices import Notices, _record_key
from carillon.stores.pages import Page

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
SETTLE = timedelta(seconds=70)
LIFE_SECONDS = 55
"""Of a process; a message whose executor has died may come again however late."""
HOOK = channel_text(WebhookTarget(url="https://example.com/hook"))
OPS = Notification("o", "ops", 1, (Told.RUN_DEAD,), HOOK, NOON - SETTLE * 9, NOON - SETTLE * 9)


class Stop(BaseException):
    """The actor stands before its next call."""


@dataclass(frozen=True)
class Actor:
    """An executor at an event (the letter of a job) or at an end (a message), after `answers`;
    `began` is None while the message of one that died has yet to come again."""

    at: str | Message
    since: float
    answers: tuple[Any, ...] = ()
    began: float | None = None


@dataclass(frozen=True)
class State:
    """`now` in seconds; `come` are events that happened, `ends` are (visible, message). So many
    `crashes` and `failures` of sends are to come; `has_crashed`: there was one of either.
    `excused` are the jobs of events whose send has failed after the last event had come. Jobs work
    again from second `recovers_at` on."""

    now: float = 0
    actors: tuple[Actor, ...] = ()
    come: int = 0
    window: Any = None
    records: tuple[tuple[str, str], ...] = ()
    feed: tuple[tuple[float, str, float], ...] = ()
    sent: frozenset[str] = frozenset()
    ends: tuple[tuple[float, Message], ...] = ()
    crashes: int = 1
    failures: int = 0
    has_crashed: bool = False
    excused: frozenset[str] = frozenset()
    recovers_at: float = 0


@dataclass(frozen=True)
class Stored:
    payload: str


class Ports:
    """Answers an actor what it was answered before, lets one call more through, then stops it."""

    def __init__(self, state: State, actor: Actor, *, refuses: bool = False) -> None:
        self.state = state
        self.refuses = refuses
        self.answers = list(actor.answers)
        self.place = 0
        self.has_called = False

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self._answer(lambda: self.state.now, is_call=False))

    def sleep(self, seconds: float) -> None:
        pass

    def _answer(self, effect: Callable[[], Any], *, is_call: bool = True) -> Any:
        if self.place == len(self.answers):
            if self.has_called:
                raise Stop
            self.has_called = is_call
            self.answers.append(effect())
        self.place += 1
        return self.answers[self.place - 1]

    def _change(self, **members: Any) -> bool:
        self.state = replace(self.state, **members)
        return True

    def list(self, *_: Any) -> Any:
        return SimpleNamespace(items=(OPS,))

    def get(self, owner: str, key: str) -> Any:
        if key == OPS.name:
            return self._answer(lambda: self.state.window)
        return self._answer(lambda: _record_of(self.state, key))

    def delivery(self, key: RunKey) -> Any:
        return self._answer(lambda: key.run_id in self.state.sent or None)

    def put(self, row: Any, over: int | None) -> bool:
        if isinstance(row, windows.Window):
            seen = self.state.window
            return bool(
                self._answer(lambda: (seen and seen.revision) == over and self._change(window=row))
            )
        return bool(
            self._answer(
                lambda: (
                    _record_of(self.state, row.key) is None
                    and self._change(
                        records=tuple(sorted((*self.state.records, (row.key, row.payload))))
                    )
                )
            )
        )

    def send(self, messages: Sequence[Message], delays: Sequence[float]) -> None:
        (message,), (delay,) = messages, delays

        def effect() -> bool:
            if self.refuses:
                self.refuses = False
                self._change(failures=self.state.failures - 1, has_crashed=True)
                return False
            if message.key.kind is RunKind.NOTICE:
                return self._change(sent=self.state.sent | {message.key.run_id})
            visible = max(self.state.now + delay, (message.due_at - NOON).total_seconds())
            if message.attempt < ((self.state.window and self.state.window.step) or 0):
                visible = self.state.now + delay
            ends = (*self.state.ends, (visible, message))
            if ends.count(ends[-1]) > 2:  # a third copy meets what the second has met
                return True
            return self._change(ends=tuple(sorted(ends, key=str)))

        if not self._answer(effect):
            raise QueueUnavailableError(1, "down")

    def read(self, owner: str, only: Any, from_at: Any, until_at: Any, *_: Any) -> Page[Result]:
        def effect() -> tuple[Result, ...]:
            found = ((NOON + timedelta(seconds=at), job, x) for at, job, x in self.state.feed)
            return tuple(_result(job, x, at) for at, job, x in found if from_at <= at <= until_at)

        return Page(self._answer(effect))

    def latest(self, *_: Any) -> tuple[Run, ...]:
        return self._answer(  # type: ignore[no-any-return]
            lambda: RECOVERED if self.state.now >= self.state.recovers_at else (), is_call=False
        )

    def record(self, job: str, since: float) -> None:
        self._answer(
            lambda: self._change(feed=_with(self.state.feed, (self.state.now, job, since)))
        )


def _with(items: tuple[Any, ...], item: Any) -> tuple[Any, ...]:
    """In an order of their own: who put an item first makes no other state."""
    return tuple(sorted((*items, item)))


def _record_of(state: State, key: str) -> Any:
    found = dict(state.records).get(key)
    return None if found is None else Stored(found)


def _key(job: str, since: float) -> RunKey:
    return RunKey("o", job, RunKind.SCHEDULED, NOON + timedelta(seconds=since))


def _result(job: str, since: float, at: datetime) -> Result:
    return Result(_key(job, since), RunStatus.DEAD, 1, at, f"job {job}")


LATER = NOON + timedelta(days=1)
RECOVERED = (
    Run(_key("a", 0), RunStatus.SUCCEEDED, 1, 1, "c", "", LATER, LATER, finished_at=LATER),
)


def act(state: State, actor: Actor, *, refuses: bool = False) -> tuple[State, Actor | None]:
    """The state after the actor's next call, which fails where it is a send that the queue
    `refuses`, and the actor then; None: it has ended."""
    port = Ports(state, actor, refuses=refuses)
    notices = Notices(port, port, port, timedelta(days=30))  # type: ignore[arg-type]
    orders = WindowOrders(notices, port, SETTLE, "")  # type: ignore[arg-type]
    try:
        if isinstance(actor.at, Message):
            ports: Any = SimpleNamespace(
                notifications=SimpleNamespace(get=lambda *_: OPS),
                windows=port,
                runs=SimpleNamespace(get=port.delivery),
                queue=port,
                clock=port,
                feed=port,
                history=SimpleNamespace(latest=port.latest, get=lambda key: None),
                window_orders=orders,
                settle=SETTLE,
                console_url="",
            )
            WindowEnd(ports).end(actor.at, port.now() + timedelta(minutes=1))
        else:
            notifier = Notifier(port, port, orders, port)  # type: ignore[arg-type]
            run_id = _key(actor.at, actor.since).run_id
            named = {"job_id": actor.at, "job_name": f"job {actor.at}", "tags": {}}
            at, data = NOON + timedelta(seconds=actor.since), {**named, "run_id": run_id}
            notifier.heard("o", Event("e", EventType.RUN_DEAD, run_id, at, data))
            port.record(actor.at, actor.since)
    except Stop:
        began = state.now if actor.began is None else actor.began
        return port.state, replace(actor, answers=tuple(port.answers), began=began)
    except QueueUnavailableError:  # of an end: its message comes again
        return port.state, Actor(actor.at, actor.since)
    return port.state, None


Events = tuple[tuple[str, float], ...]
"""Failures of runs: the job's letter, and the second."""


def moves(state: State, starts: Events) -> Iterator[State]:
    for place, actor in enumerate(state.actors):
        others = (*state.actors[:place], *state.actors[place + 1 :])
        after, then = act(state, actor)
        yield replace(after, actors=others if then is None else (*others, then))
        if state.failures:
            after, then = act(state, actor, refuses=True)
            if after.failures < state.failures:
                if isinstance(actor.at, str) and state.come == len(starts):
                    after = replace(after, excused=state.excused | {actor.at})
                yield replace(after, actors=others if then is None else (*others, then))
        if state.crashes and actor.answers:
            crashed = replace(state, crashes=state.crashes - 1, has_crashed=True)
            again = Actor(actor.at, actor.since)
            yield replace(crashed, actors=(*others, again))
    for place, (visible, message) in enumerate(state.ends):
        if visible <= state.now:
            rest = (*state.ends[:place], *state.ends[place + 1 :])
            begun = Actor(message, state.now, began=state.now)
            yield replace(state, ends=rest, actors=(*state.actors, begun))
    following = starts[state.come : state.come + 1]
    times = [visible for visible, _ in state.ends] + [at for _, at in following]
    later = min((at for at in times if at > state.now), default=None)
    if following and following[0][1] <= state.now:
        begun = Actor(*following[0], began=state.now)
        yield replace(state, come=state.come + 1, actors=(*state.actors, begun))
    elif later is not None and all(
        actor.began is None or later - actor.began < LIFE_SECONDS for actor in state.actors
    ):
        yield replace(state, now=later)


def explore(
    starts: Events, crashes: int, failures: int = 0, recovers_at: float = 0
) -> tuple[int, list[str]]:
    """The number of states, and what is wrong at the ends."""
    first = State(crashes=crashes, failures=failures, recovers_at=recovers_at)
    seen, waiting = {first}, [first]
    faults: list[str] = []
    while waiting:
        state = waiting.pop()
        following = list(moves(state, starts))
        for each in following:
            if each not in seen:
                seen.add(each)
                waiting.append(each)
        if not following:
            faults += judged(state, starts)
    return len(seen), faults


def judged(state: State, starts: Events) -> Iterator[str]:
    told: Counter[str] = Counter()
    for key, text in state.records:
        body = json.loads(text)
        if _run_id_of(state, key) in state.sent:
            event = body.get("event")
            told.update({event["job_id"]: 1} if event else {})
            told.update({each["job_id"]: each["count"] for each in body.get("jobs", ())})
    for job, count in Counter(job for job, _ in starts).items():
        if (told[job] < count and job not in state.excused) or (
            told[job] > count and not state.has_crashed
        ):
            yield f"{count} failures of {job}, {told[job]} are told"
    if state.window.is_open and not state.excused:
        yield "a window is open for ever"


def _run_id_of(state: State, record_key: str) -> str:
    keys = (RunKey.from_run_id("o", run_id) for run_id in state.sent)
    return next((key.run_id for key in keys if _record_key(key) == record_key), "")


TOGETHER = (("a", 0.0), ("b", 0.0))
AT_THE_END = (("a", 0.0), ("b", 899.0), ("c", 901.0))
WITHIN = (("a", 0.0), ("b", 300.0))
IN_THE_GAP = (("a", 0.0), ("b", 940.0))
APART = (("a", 0.0), ("b", 971.0))
NEWS_AFTER_A_DIGEST = (("a", 0.0), ("a", 300.0), ("b", 1900.0))
NEWS_BESIDE_WHAT_IS_OWED = (("a", 0.0), ("a", 1000.0), ("b", 1100.0))


@pytest.mark.parametrize("starts", [TOGETHER, AT_THE_END, IN_THE_GAP, APART, NEWS_AFTER_A_DIGEST])
def test_each_event_is_told_once(starts: Events) -> None:
    states, faults = explore(starts, crashes=0)
    assert not faults, faults[0]
    assert states > 40


def test_after_a_crash_each_event_is_told() -> None:
    """Of IN_THE_GAP and APART the states are many: a minute for each."""
    states, faults = explore(TOGETHER, crashes=1)
    assert not faults, faults[0]
    assert states > 400


@pytest.mark.parametrize("starts", [TOGETHER, WITHIN, IN_THE_GAP, APART, NEWS_AFTER_A_DIGEST])
def test_after_a_send_that_failed_the_next_event_has_all_told(starts: Events) -> None:
    states, faults = explore(starts, crashes=0, failures=1)
    assert not faults, faults[0]
    assert states > 40


def test_what_the_window_before_owes_is_told_though_news_was_not_sent() -> None:
    """`a` fails on: its second failure is left to a step that comes after the news of `b`."""
    states, faults = explore(NEWS_BESIDE_WHAT_IS_OWED, crashes=0, failures=1, recovers_at=2000)
    assert not faults, faults[0]
    assert states > 40


def test_a_window_that_nobody_orders_after_its_end_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted bug: the end of the window before sends for the new one in its period only."""

    def is_owed(window: windows.Window, now: datetime) -> bool:
        return not window.is_ordered and now < window.until

    monkeypatch.setattr(windows.Window, "is_owed", is_owed)
    _, faults = explore(NEWS_BESIDE_WHAT_IS_OWED, crashes=0, failures=1, recovers_at=2000)
    assert "2 failures of a, 1 are told" in faults


def test_a_window_whose_sends_have_failed_and_are_not_repeated_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted bug: a window counts as ordered as soon as it is put."""
    opened = windows._opened

    def ordered(*args: Any) -> windows.Window:
        return replace(opened(*args), is_ordered=True)

    monkeypatch.setattr(windows, "_opened", ordered)
    _, faults = explore(WITHIN, crashes=0, failures=1)
    assert "1 failures of a, 0 are told" in faults


def test_a_window_that_closes_over_what_comes_after_its_end_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted bug: nothing marks a window whose end has passed."""

    def silent(window: Any, event: Any, *_: Any) -> None:
        return None

    monkeypatch.setattr(windows, "_with", silent)
    _, faults = explore((("a", 0.0), ("b", 965.0)), crashes=0)
    assert "1 failures of b, 0 are told" in faults
