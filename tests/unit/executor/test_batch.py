"""Batches: side by side, repeated ones last and alone, failures apart."""

import threading
import time

from functions.executor.batch import BatchRunner, Received


def received(*counts: int) -> list[Received]:
    return [Received(f"m{number}", "body", count) for number, count in enumerate(counts)]


def test_first_receptions_run_side_by_side() -> None:
    together = threading.Barrier(10, timeout=5)
    failed = BatchRunner().run(
        received(*[1] * 10), lambda record: void(together.wait()), lambda record, error: None
    )
    assert failed == []


def test_a_repeated_record_runs_when_all_others_are_done_and_alone() -> None:
    log: list[str] = []
    lock = threading.Lock()

    def handle(record: Received) -> None:
        with lock:
            log.append(f"{record.message_id} starts")
        time.sleep(0.05)
        with lock:
            log.append(f"{record.message_id} ends")

    BatchRunner().run(received(2, 1, 3, 1), handle, lambda record, error: None)
    assert log[4:] == ["m0 starts", "m0 ends", "m2 starts", "m2 ends"]


def test_only_the_records_that_raise_stay_with_the_queue() -> None:
    told: list[str] = []

    def handle(record: Received) -> None:
        if record.message_id in ("m1", "m3"):
            raise ValueError(record.message_id)

    failed = BatchRunner().run(
        received(1, 1, 1, 4), handle, lambda record, error: told.append(str(error))
    )
    assert sorted(failed) == ["m1", "m3"]
    assert sorted(told) == ["m1", "m3"]


def void(value: object) -> None:
    """Drop a value."""
