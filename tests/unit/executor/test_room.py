"""Calls that wait for a place: as long as places become free, and no longer than they may."""

from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic, sleep

from carillon.executor.task_process.room import Room

LONG = 60.0


def waited(room: Room) -> tuple[bool, float]:
    """Whether it has a place, and the seconds that it has waited."""
    began = monotonic()
    return room.take(), monotonic() - began


def full(places: int, standstill_seconds: float, longest_seconds: float) -> Room:
    room = Room(places, standstill_seconds, longest_seconds)
    assert all(room.take() for _ in range(places))
    return room


def served(room: Room) -> Room:
    """A full one of which a place has become free before."""
    room.free()
    assert room.take()
    return room


def test_before_the_first_has_ended_it_waits_as_long_as_it_may() -> None:
    has_room, seconds = waited(full(2, 0, longest_seconds=0.3))
    assert not has_room
    assert seconds >= 0.3


def test_where_nothing_becomes_free_it_gives_up_early() -> None:
    has_room, seconds = waited(served(full(2, 0.3, LONG)))
    assert not has_room
    assert 0.3 <= seconds < LONG / 2


def test_a_standstill_counts_from_the_arrival() -> None:
    room = served(full(1, 0.4, LONG))
    sleep(0.5)
    assert waited(room)[1] >= 0.4


def test_it_waits_on_while_places_become_free() -> None:
    """Three, one after the other, of which the last waits for longer than a standstill."""
    room = served(full(1, 2.0, LONG))

    def held() -> float:
        has_room, seconds = waited(room)
        assert has_room
        sleep(1.2)
        room.free()
        return seconds

    with ThreadPoolExecutor(3) as pool:
        calls: list[Future[float]] = [pool.submit(held) for _ in range(3)]
        room.free()
        assert max(call.result() for call in calls) > 2.0


def test_but_no_longer_than_it_may() -> None:
    room = served(full(1, LONG, 0.3))
    assert not waited(room)[0]
