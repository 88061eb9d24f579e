"""Batches: side by side, what may kill the executor last and alone, failures apart."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from carillon.domain.chunks.message import CHUNK_BEGINS
from carillon.domain.job import Lane
from carillon.domain.message import Message, came_back, decode, encode
from carillon.domain.run import RunKey, RunKind
from carillon.errors import RunAloneError
from carillon.executor.batch import (
    CHUNKS_AT_ONCE,
    SUSPICIOUS_COUNT,
    BatchRunner,
    Received,
    in_waves,
)

BACK = encode(
    Message(
        key=RunKey("o", "j", RunKind.SCHEDULED, datetime(2026, 12, 1, tzinfo=UTC)),
        generation_id="01KBCCS1P0N0T0F1X1NGAT0NCE",
        segment=0,
        lane=Lane.NORMAL,
        due_at=datetime(2026, 12, 1, tzinfo=UTC),
        returns=1,
    )
)
"""The body of a message that the dead-letter queue sent back."""


def received(*counts: int) -> list[Received]:
    return [Received(f"m{number}", "body", count) for number, count in enumerate(counts)]


def orderly(records: list[Received], died: Sequence[str] = ()) -> list[str]:
    """What begins and ends when the records are handled; on those that `died` an executor has."""
    log: list[str] = []
    lock = threading.Lock()

    def handle(record: Received, alone: bool) -> None:
        if record.message_id in died and not alone:
            raise RunAloneError(record.message_id)
        with lock:
            log.append(f"{record.message_id} starts{' alone' if alone else ''}")
        time.sleep(0.05)
        with lock:
            log.append(f"{record.message_id} ends")

    errors: list[Exception] = []
    assert BatchRunner().run(records, handle, lambda record, error: errors.append(error)) == []
    assert errors == []
    return log


@pytest.mark.parametrize("count", [1, 2, 3])
def test_records_run_side_by_side_though_they_were_received_before(count: int) -> None:
    """On AWS a throttled invocation counts as a reception: ten runs of 0.5 s took 5 s."""
    together = threading.Barrier(10, timeout=5)
    failed = BatchRunner().run(
        received(*[count] * 10),
        lambda record, alone: void(together.wait()),
        lambda record, error: None,
    )
    assert failed == []


@pytest.mark.parametrize(
    ("body", "turn_seconds", "most"),
    [(CHUNK_BEGINS, 5, CHUNKS_AT_ONCE), (CHUNK_BEGINS, 0.01, 10), ("body", 5, 10)],
    ids=["chunks", "chunks behind calls that last", "runs"],
)
def test_few_chunks_are_under_way_at_once(body: str, turn_seconds: float, most: int) -> None:
    lock, under_way, seen = threading.Lock(), 0, list[int]()

    def handle(record: Received, alone: bool) -> None:
        nonlocal under_way
        with lock:
            under_way += 1
            seen.append(under_way)
        time.sleep(0.1)
        with lock:
            under_way -= 1

    records = [Received(f"m{number}", body, 1) for number in range(10)]
    runner = BatchRunner(turn_seconds)
    for _ in range(2):  # each has given its place back
        assert runner.run(records, handle, lambda record, error: None) == []
        assert max(seen) == most
        seen.clear()


def test_a_record_received_often_runs_when_all_others_are_done_and_alone() -> None:
    log = orderly(received(5, 1, 4, 1))
    assert log[4:] == ["m2 starts alone", "m2 ends", "m0 starts alone", "m0 ends"]


def test_a_record_that_came_back_from_the_dead_letter_queue_runs_last_and_alone() -> None:
    back = [Received("back", BACK, 1), *received(1, 1)]
    assert orderly(back)[4:] == ["back starts alone", "back ends"]


def test_no_text_of_an_owner_looks_like_a_record_that_came_back() -> None:
    named = replace(decode(BACK), returns=0)
    key = replace(named.key, owner='"returns":1', request_id='","returns":1')
    assert not came_back(encode(replace(named, key=key)))


def test_a_run_on_which_an_executor_died_runs_last_and_alone() -> None:
    log = orderly(received(2, 2, 1), died=["m0"])
    assert log[4:] == ["m0 starts alone", "m0 ends"]


def test_a_single_record_is_alone() -> None:
    assert orderly(received(1), died=["m0"]) == ["m0 starts alone", "m0 ends"]


def test_only_the_records_that_raise_stay_with_the_queue() -> None:
    told: list[str] = []

    def handle(record: Received, alone: bool) -> None:
        if record.message_id in ("m1", "m3"):
            raise ValueError(record.message_id)

    failed = BatchRunner().run(
        received(1, 1, 1, 4), handle, lambda record, error: told.append(str(error))
    )
    assert sorted(failed) == ["m1", "m3"]
    assert sorted(told) == ["m1", "m3"]


def void(value: object) -> None:
    """Drop a value."""


def reached_alone(names: str, count: int) -> list[str]:
    """The order in which these run alone at their reception number `count`."""
    order: list[str] = []

    def wave(records: Sequence[Received], alone: bool) -> list[None]:
        assert alone
        order.extend(record.body for record in records)
        return [None] * len(records)

    in_waves([Received(name, name, count) for name in names], wave)
    return order


def test_those_that_run_alone_change_their_order() -> None:
    """One that kills does not keep the same others from being reached."""
    orders = [reached_alone("abcde", count) for count in range(SUSPICIOUS_COUNT, 20)]
    for killer in "abcde":
        reached = {name for order in orders for name in order[: order.index(killer)]}
        assert reached == set("abcde") - {killer}
