"""The loop, its dice and its faults: what every simulation stands on."""

import gc
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from carillon.errors import InvalidFieldError, QueueUnavailableError, StoreUnavailableError
from carillon.simulation.faults import Chaos, Draws, Fault, Faults, Strike
from carillon.simulation.loop import Loop, Process
from carillon.simulation.seams import LoopClock, LoopEntropy, Replicated, seam

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
KNOWN_BITS = [16294208416658607535, 3887672912435423921]


class Counter:
    """A store with a number."""

    def __init__(self) -> None:
        self.number = 0

    def get(self) -> int:
        return self.number

    def put(self, number: int) -> bool:
        self.number = number
        return True


def increments(counter: Counter) -> Callable[[], None]:
    """What loses an update where another one comes between its read and its write."""

    def run() -> None:
        counter.put(counter.get() + 1)

    return run


def outcome_of(seed: int, most_latency_us: int = 0) -> tuple[int, list[str]]:
    loop = Loop(NOON, Chaos(seed, Faults(), most_latency_us))
    lines: list[str] = []
    loop.trace = lines.append
    counter = Counter()
    for name in ("one", "two"):
        loop.spawn(Process(name), name, increments(seam(counter, "counter", loop)))
    loop.run(loop.us + 1_000_000)
    return counter.number, lines


def test_the_seed_decides_who_comes_first_and_nothing_else_does() -> None:
    outcomes = [outcome_of(seed) for seed in range(40)]
    assert {number for number, _ in outcomes} == {1, 2}
    assert [outcome_of(seed) for seed in range(40)] == outcomes
    assert len({tuple(lines) for _, lines in outcomes}) > 3


def test_latency_interleaves_too() -> None:
    assert {outcome_of(seed, 50_000)[0] for seed in range(40)} == {1, 2}


def test_without_chaos_a_task_goes_on_until_it_sleeps() -> None:
    loop = Loop(NOON)
    counter = Counter()
    for name in ("one", "two"):
        loop.spawn(Process(name), name, increments(seam(counter, "counter", loop)))
    loop.run(loop.us)
    assert counter.number == 2


def test_sleeping_tasks_wake_in_the_order_of_virtual_time() -> None:
    loop = Loop(NOON)
    clock = LoopClock(loop)
    woken: list[tuple[str, float]] = []

    def sleeper(name: str, seconds: float) -> Callable[[], None]:
        def run() -> None:
            clock.sleep(seconds)
            woken.append((name, (clock.now() - NOON).total_seconds()))

        return run

    for name, seconds in (("a", 2.5), ("b", 0.25), ("c", 86_400)):
        loop.spawn(Process(name), name, sleeper(name, seconds))
    loop.run(loop.us + 3_000_000)
    assert woken == [("b", 0.25), ("a", 2.5)]
    assert loop.instant() == NOON.replace(second=3)
    loop.run(loop.us + 86_400_000_000)
    assert woken[-1] == ("c", 86_400)


def test_a_skewed_process_has_its_own_time() -> None:
    loop = Loop(NOON)
    seen = loop.spawn(Process("fast", skew_us=90_000_000), "fast", LoopClock(loop).now)
    loop.run(loop.us)
    assert seen.value == NOON.replace(minute=1, second=30)


def struck(faults: Faults, *, freezes: bool = False) -> tuple[Counter, Any, Loop]:
    """One task that puts 1, under a fault that is sure to strike."""
    loop = Loop(NOON, Chaos(3, faults))
    counter = Counter()
    process = Process("p", freezes=freezes)
    task = loop.spawn(process, "p", lambda: seam(counter, "counter", loop).put(1))
    loop.end_at(process, loop.us + 10_000_000)
    loop.run(loop.us + 600_000_000)
    return counter, task, loop


def test_a_process_that_dies_before_a_call_has_not_made_it() -> None:
    counter, task, loop = struck(Faults(dies=1))
    assert (counter.number, task.died, task.dead) == (0, True, True)
    assert [each.strike for each in loop.chaos.injected] == [Strike(Fault.DIES, "p/1")]


def test_a_lost_answer_leaves_the_effect() -> None:
    counter, task, _ = struck(Faults(lost=1))
    assert counter.number == 1
    assert task.value is True or isinstance(task.failure, StoreUnavailableError)


def test_a_throttled_call_has_no_effect() -> None:
    counter, task, _ = struck(Faults(throttled=1))
    assert counter.number == 0
    assert isinstance(task.failure, StoreUnavailableError)


def test_a_throttled_queue_says_so_in_its_own_words() -> None:
    loop = Loop(NOON, Chaos(3, Faults(throttled=1)))
    task = loop.spawn(Process("p"), "p", lambda: seam(Counter(), "queue", loop).put(1))
    loop.run(loop.us)
    assert isinstance(task.failure, QueueUnavailableError)


def test_a_frozen_process_outlives_its_time_and_goes_on() -> None:
    counter, task, _ = struck(Faults(paused=1), freezes=True)
    assert (counter.number, task.value) == (1, True)


def test_any_other_process_ends_at_its_time() -> None:
    loop = Loop(NOON)
    process = Process("p")
    task = loop.spawn(process, "p", lambda: loop.sleep(60))
    loop.end_at(process, loop.us + 10_000_000)
    loop.run(loop.us + 61_000_000)
    assert task.died


def test_whatever_a_dead_process_still_does_has_no_effect() -> None:
    """Code may catch everything and clean up: the machine under it is gone."""
    loop = Loop(NOON)
    counter, process = Counter(), Process("p")
    port = seam(counter, "counter", loop)

    def run() -> None:
        try:
            loop.sleep(60)
        finally:
            port.put(9)

    task = loop.spawn(process, "p", run)
    loop.end_at(process, loop.us + 1_000_000)
    loop.run(loop.us + 61_000_000)
    assert (task.died, counter.number) == (True, 0)


def test_a_task_waits_for_those_that_it_started() -> None:
    loop = Loop(NOON)

    def fails() -> None:
        raise ValueError("as it was to")

    def run() -> list[object]:
        named = [("a", lambda: loop.sleep(3)), ("b", fails), ("c", lambda: 7)]
        return [each.failure or each.value for each in loop.together(named)]

    task = loop.spawn(Process("p"), "p", run)
    loop.run(loop.us + 2_000_000)
    assert not task.dead
    loop.run(loop.us + 1_000_000)
    nothing, failure, seven = task.value
    assert (nothing, seven) == (None, 7)
    assert isinstance(failure, ValueError)


def test_calls_side_by_side_take_as_long_as_the_longest_and_the_seed_orders_them() -> None:
    """Each is a task with a name of its own, whose luck no other call has."""

    def outcome(seed: int) -> tuple[int, list[str]]:
        loop = Loop(NOON, Chaos(seed, Faults(), most_latency_us=1000))
        lines: list[str] = []
        loop.trace = lines.append
        counter, began_us = Counter(), loop.us
        increment = increments(seam(counter, "counter", loop))

        def call(seconds: int) -> int:
            increment()
            loop.sleep(seconds)
            return seconds

        def run() -> list[int]:
            calls = [partial(call, seconds) for seconds in (1, 3, 2)]
            return loop.side_by_side(calls) + loop.side_by_side(calls[:2])

        task = loop.spawn(Process("p"), "p", run)
        loop.run(began_us + 60_000_000)
        assert task.value == [1, 3, 2, 1, 3]
        assert loop.side_by_side([lambda: 7, lambda: 8]) == [7, 8], "outside of any task"
        return counter.number, lines

    outcomes = [outcome(seed) for seed in range(20)]
    assert outcomes == [outcome(seed) for seed in range(20)]
    assert len({number for number, _ in outcomes}) > 1, "others come between read and write"
    callers = {line.split()[2] for line in outcomes[0][1]}
    assert callers == {"p/1.0:", "p/1.1:", "p/1.2:", "p/2.0:", "p/2.1:"}


def test_what_one_of_the_calls_side_by_side_raises_is_raised() -> None:
    loop = Loop(NOON)

    def fails() -> int:
        raise QueueUnavailableError(1, "throttled")

    task = loop.spawn(Process("p"), "p", lambda: loop.side_by_side([fails, lambda: 1]))
    loop.run(loop.us + 1_000_000)
    assert isinstance(task.failure, QueueUnavailableError)


def test_calm_ends_all_faults() -> None:
    calm_us = Loop(NOON).us
    chaos = Chaos(3, Faults(throttled=1), calm_us=calm_us)
    loop = Loop(NOON, chaos)
    task = loop.spawn(Process("p"), "p", lambda: seam(Counter(), "counter", loop).put(1))
    loop.run(loop.us)
    assert task.value is True
    assert chaos.injected == []


def test_only_the_strikes_that_are_left_happen() -> None:
    strikes = {Strike(Fault.THROTTLED, "b/1")}
    loop = Loop(NOON, Chaos(3, Faults(throttled=1), only=frozenset(strikes)))
    port = seam(Counter(), "counter", loop)
    tasks = [loop.spawn(Process(n), n, lambda: port.put(1)) for n in ("a", "b")]
    loop.run(loop.us)
    assert [task.failure is None for task in tasks] == [True, False]
    assert {each.strike for each in loop.chaos.injected} == strikes


def test_a_throttled_read_of_many_answers_some() -> None:
    class Jobs:
        def get_all(self, keys: list[int]) -> dict[int, str]:
            return dict.fromkeys(keys, "row")

    strikes = frozenset({Strike(Fault.THROTTLED, "p/1~")})
    loop = Loop(NOON, Chaos(3, Faults(throttled=1), only=strikes))
    port = seam(Jobs(), "jobs", loop)
    task = loop.spawn(Process("p"), "p", lambda: [port.get_all(list(range(20))) for _ in "12"])
    loop.run(loop.us)
    first, second = map(len, task.value)
    assert 0 < first < second == 20


def test_a_stale_read_answers_what_was_so_before() -> None:
    loop = Loop(NOON, Chaos(3, Faults(stale=1)))
    store = Replicated(Counter(), Counter(), loop, frozenset({"get"}))
    store.put(1)
    loop.us += 60_000_000
    store.put(2)
    tasks = [loop.spawn(Process(f"{n}"), f"{n}", lambda: store.get()) for n in range(3)]
    loop.run(loop.us)
    assert [task.value for task in tasks] == [1, 1, 1]
    assert store.get() == 2  # outside of the simulation there is but the truth


def test_ids_and_chance_of_a_process_do_not_depend_on_others() -> None:
    def ids_of(names: str) -> dict[str, str]:
        loop = Loop(NOON, Chaos(5, Faults()))
        entropy = LoopEntropy(loop)
        tasks = {n: loop.spawn(Process(n), n, lambda: entropy.new_id(NOON)) for n in names}
        loop.run(loop.us)
        return {name: task.value for name, task in tasks.items()}

    assert ids_of("abc")["b"] == ids_of("b")["b"] != ids_of("ab")["a"]


def test_the_dice_are_the_same_on_every_machine() -> None:
    assert Draws(7, "tick 12:03", 2).bits() == Draws(7, "tick 12:03", 2).bits()
    assert [Draws(0, "", 0).bits(), Draws(1, "a", 1).bits()] == KNOWN_BITS
    throws = [Draws(1, "fraction", n).fraction() for n in range(10_000)]
    assert 0.48 < sum(throws) / len(throws) < 0.52
    assert min(throws) >= 0
    assert max(throws) < 1
    assert {Draws(1, "below", n).below(6) for n in range(100)} == set(range(6))


def test_the_names_of_faults_are_those_of_their_probabilities() -> None:
    assert [fault.value for fault in Fault] == list(Faults.__slots__)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("explodes=0.1", "'explodes' is none of dies, throttled, "),
        ("dies", "dies takes a probability in [0, 1]: ''"),
        ("dies=2", "dies takes a probability in [0, 1]: '2'"),
        ("dies=nan", "dies takes a probability in [0, 1]: 'nan'"),
        ("dies=often", "dies takes a probability in [0, 1]: 'often'"),
    ],
)
def test_faults_that_cannot_be_meant_are_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidFieldError) as raised:
        Faults.parse(text)
    assert raised.value.field == "faults"
    assert said in raised.value.message


def test_faults_are_parsed_from_what_users_write() -> None:
    assert Faults.parse("dies=0.25, tick_missing=1") == Faults(dies=0.25, tick_missing=1.0)
    assert Faults.parse("") == Faults()


def test_a_closed_loop_keeps_nothing_alive() -> None:
    """A suspended greenlet's frames are invisible to the garbage collector."""

    class World:
        """What a task holds."""

    def leave() -> weakref.ref[World]:
        loop, world = Loop(NOON), World()

        def waits(held: World) -> None:
            loop.together([("child", lambda: loop.sleep(60)), ("late", lambda: None)])
            assert held

        loop.spawn(Process("p"), "p", lambda: waits(world))
        loop.spawn(Process("q"), "q", lambda: waits(world), at_us=loop.us + 90_000_000)
        loop.run(loop.us + 1_000_000)
        loop.close()
        return weakref.ref(world)

    left = leave()
    gc.collect()
    assert left() is None
