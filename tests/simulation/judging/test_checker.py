"""A checker that cannot fail proves nothing: what it says of outcomes (I1) meets stories that keep
it and others that break it; and whole simulations, which break nothing.

What it says of calls, rows and skips: test_checker_calls.py.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.job import Generation, Lane
from carillon.domain.message import Message, encode
from carillon.domain.policies import CatchUp
from carillon.domain.run import AttemptRecord, Resolution, RunError, RunKind, RunStatus
from carillon.executor.targets import Call
from carillon.schedules import parse_schedule
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.faults import Chaos, Faults
from carillon.simulation.loop import Loop
from carillon.simulation.services import Api, job_body
from carillon.simulation.targets import SimulatedTargets, TargetCall
from carillon.stores.memory.messaging import Received
from tests.simulation.judging.checker_book import (
    GENERATION_ID,
    JOB_ID,
    NOON,
    OWNER,
    Book,
    after,
    found,
    key_of,
    only,
    plain,
)
from tests.simulation.judging.deliveries import Delivered, delivery_of
from tests.simulation.judging.evidence import Evidence, RunWrite
from tests.simulation.judging.recorder import Recorder
from tests.support.jobs import job_with
from tests.support.requests import API_SECONDS

SCHEDULED, SKIPPED = RunStatus.SCHEDULED, RunStatus.SKIPPED


def test_three_occurrences_that_ran_are_as_they_should_be() -> None:
    assert found(plain().evidence(35)) == []


def test_an_occurrence_without_a_row_is_lost() -> None:
    book = Book()
    book.ran_at(10, 30)
    only(book.evidence(35), "I1", "at 2026-12-01 12:00:20+00:00 has no row")


def test_what_is_due_later_is_not_asked_for() -> None:
    assert found(plain().evidence(39)) == []
    only(plain().evidence(40), "I1", "12:00:40+00:00 has no row")


def test_an_occurrence_is_due_at_its_place_in_the_window() -> None:
    book = Book(spread_seconds=5)
    for second in (10, 20):
        row = book.claimed(key_of(second), after(second + 5), effective_at=after(second + 5))
        book.called(row, after(second + 5.1))
        book.finished(row, after(second + 5.3))
    assert found(book.evidence(34)) == []
    only(book.evidence(35), "I1", "12:00:30+00:00 has no row")


def test_a_generation_owes_nothing_after_its_pause_and_the_next_owes_from_its_beginning() -> None:
    book = Book()
    book.ran_at(10)
    book.pause(15)
    book.resume(25)
    book.ran_at(30)
    assert found(book.evidence(35)) == []
    book = Book()
    book.pause(15)
    book.resume(25)
    book.ran_at(30)
    only(book.evidence(35), "I1", "12:00:10+00:00 has no row")


def test_a_job_that_was_completed_too_early_owes_the_rest() -> None:
    book = Book()
    book.ran_at(10, 20)
    book.becomes(20.5, book.job.completed(after(20.5), after(999)))
    only(book.evidence(29), "complete", "before its occurrence")
    assert tuple(sorted({name for name, _ in found(book.evidence(30))})) == ("I1", "complete")


def test_a_run_at_no_occurrence_is_one_too_many() -> None:
    book = plain()
    book.ran(key_of(25))
    only(book.evidence(35), "I1", "no generation of its job yields")


@pytest.mark.parametrize("reason", ["paused", "deleted"])
def test_a_skip_at_no_occurrence_is_one_too_many(reason: str) -> None:
    """Such as noise of a change that lost against the pause."""

    def story(second: int) -> Evidence:
        book = Book()
        book.ran_at(10)
        stop = book.pause if reason == "paused" else book.delete
        stop(15)
        row = book.claimed(key_of(second), after(26))
        book.finished(row, after(26), SKIPPED, reason=reason)
        return book.evidence(35)

    assert found(story(20)) == []
    only(story(25), "I1", "no generation of its job yields")


def test_a_catch_up_of_a_generation_that_never_counted_is_one_too_many() -> None:
    book = outage()
    book.pause(16)
    book.passed_over(20, 40, 3, at=60, generation_id="noise")
    only(book.evidence(55), "I1", "no generation noise was ever committed")


def test_a_catch_up_of_a_generation_older_than_all_remembered_ones_is_taken_for_forgotten() -> None:
    """Seed 1966072146: entries of a creation that had died; four changes are remembered."""

    def story(changes: int) -> Evidence:
        book = Book()
        book.ran_at(10)
        for change in range(changes):
            at = after(11 + change)
            generation = Generation(f"01KBD000000000000000001{change:03}", at)
            book.becomes(11 + change, book.job.in_new_generation(generation, at))
        book.gap(25, 65)
        book.ran_at(20)
        book.passed_over(30, 50, 3, at=70, generation_id=book.job.generation.generation_id)
        book.passed_over(30, 40, 2, at=70, generation_id=GENERATION_ID[:-2] + "00")
        book.ran(key_of(60), 70)
        return book.evidence(65)

    only(story(3), "I1", "was ever committed")
    assert found(story(4)) == []


@pytest.mark.parametrize("may_be_late", [False, True])
def test_what_stands_for_those_missed_or_has_waited_may_run_beside_a_later_one(
    may_be_late: bool,
) -> None:
    """Seeds 6700000490 and 6710000149: executors were away when a pause ended, or a step of a
    hand-over died. Seed 9973000178: it had waited for its share of lane slow, without a claim."""
    book = Book()
    row = book.claimed(key_of(60), after(130))
    book.called(row, after(130), may_be_late=may_be_late)
    book.finished(row, after(130.2))
    broken = [text for name, text in found(book.evidence(65)) if name == "late"]
    assert bool(broken) is not may_be_late


@pytest.mark.parametrize("in_time", [None, False, True])
def test_so_may_what_was_in_time_at_the_late_end_of_a_pause(in_time: bool | None) -> None:
    """It was just within the `grace` then, and hidden for five seconds."""
    key = key_of(60)
    message = Message(key, GENERATION_ID, 0, Lane.NORMAL, key.fire_at, in_time=in_time)
    taken = Received(1, Lane.NORMAL, encode(message), key.fire_at)
    call = Call(key.run_id, JOB_ID, "job", OWNER, 1, key.fire_at, "null", 10)
    begun = TargetCall(call, "process", after(130))
    seen = Delivered(begun, None, None, faults_before=None, taken=taken)
    assert delivery_of(seen).may_be_late is bool(in_time)


@pytest.mark.parametrize("is_removed", [False, True])
def test_what_begins_anew_at_the_instant_of_its_removal_may_be_passed_over(
    is_removed: bool,
) -> None:
    """Seed 6710009051: what had made the row for nothing removed it, and another message came."""
    book, key = Book(), key_of(20)
    book.claimed(key_of(90), after(95))
    died = book.claimed(key, after(70), process="a", attempt=2)
    if is_removed:
        book.writes.append(RunWrite(after(100), "a", "discard_claim", died, None))
        del book.rows[key]
    row = book.claimed(key, after(100), process="b")
    note = f"{key_of(90).run_id} was due by then"
    skip = replace(row, status=RunStatus.SKIPPED, reason="catch_up", note=note, lease_until=None)
    book.written(skip, after(100), "b", "finish")
    broken = [text for name, text in found(book.evidence(100)) if name == "skip"]
    assert any("it had begun" in text for text in broken) is not is_removed


def test_a_run_may_start_after_a_change_only_by_a_row_that_was_read_before() -> None:
    def story(revision: int) -> Evidence:
        book = Book()
        book.ran_at(10)
        changed = replace(book.job, schedule=parse_schedule("every 1h"))
        generation = replace(book.job.generation, generation_id="2", from_at=after(15))
        book.becomes(15, changed.in_new_generation(generation, after(15)))
        row = book.claimed(key_of(20), after(20))
        book.called(row, after(20.1), job_revision=revision)
        book.finished(row, after(20.3))
        return book.evidence(35)

    assert found(story(1)) == []
    only(story(2), "I1", "which had read revision 2: by then")


def outage(catch_up: CatchUp = CatchUp.LATEST) -> Book:
    """No tick dispatched 12:00:20 to 12:00:50 in time."""
    book = Book(catch_up=catch_up)
    book.ran_at(10)
    book.gap(15, 55)
    return book


def test_a_catch_up_covers_what_an_outage_passed_over() -> None:
    book = outage()
    book.passed_over(20, 40, 3, at=60)
    book.ran(key_of(50), 60)
    assert found(book.evidence(55)) == []


def test_a_catch_up_must_count_right_and_stand_before_a_run() -> None:
    book = outage()
    book.passed_over(20, 40, 4, at=60)
    book.ran(key_of(50), 60)
    only(book.evidence(55), "I1", "it counts 4, and there are 3")
    book = outage()
    book.passed_over(20, 40, 3, at=60)
    book.passed_over(50, 50, 1, at=60)
    only(book.evidence(65), "I1", "12:01:00+00:00, which has no row of its own")


def test_a_catch_up_from_an_earlier_instant_stands_before_what_the_first_one_covered() -> None:
    book = outage()
    book.passed_over(40, 40, 1, at=60)
    book.passed_over(20, 30, 2, at=60)
    book.ran(key_of(50), 60)
    assert found(book.evidence(55)) == []


def test_a_catch_up_passes_over_nothing_outside_of_an_outage_or_where_all_is_to_run() -> None:
    book = Book()
    book.passed_over(10, 20, 2, at=30)
    book.ran_at(30)
    only(book.evidence(35), "I1", "12:00:10+00:00 lay in no outage of segment 0")
    book = outage(CatchUp.ALL)
    book.passed_over(20, 40, 3, at=60)
    book.ran(key_of(50), 60)
    only(book.evidence(55), "I1", "its job runs what was missed (all)")


def test_a_run_that_was_due_must_have_ended() -> None:
    book = plain()
    row = book.claimed(key_of(40), after(40))
    book.called(row, after(40.1), ended_at=None, is_success=False)
    assert found(book.evidence(39)) == []
    only(book.evidence(45), "I1", "is running for ever")
    book = plain()
    row = replace(row, key=key_of(5, RunKind.MANUAL), status=SCHEDULED, attempt=0, token=0)
    book.written(row, after(5), "api", "claim")
    only(book.evidence(35), "I1", "is scheduled for ever")


@pytest.mark.parametrize(("claimed_at", "is_broken"), [(41, True), (400, False)])
def test_who_claims_after_its_lease_what_was_given_back_stands_for_nobody(
    claimed_at: float, is_broken: bool
) -> None:
    """The day was moved: the occurrence has another key now, and nobody comes for this one."""
    book = plain()
    row = book.claimed(key_of(40), after(40))
    book.writes.append(RunWrite(after(40.5), "j/1", "discard_claim", row, None))
    book.rows.pop(row.key)
    book.written(row, after(claimed_at), "j/2", "claim")
    told = [text for _, text in found(book.evidence(500)) if "is running for ever" in text]
    assert len(told) == is_broken


def test_what_is_left_over_is_told() -> None:
    only(plain().evidence(35, leftovers=["a message"]), "I1", "a message")


def test_a_chain_of_fixed_delays_goes_on_and_never_forks() -> None:
    def story() -> Book:
        book = Book("every 10s after finish")
        book.ran_at(10, 21)  # it ends 0.2 s later: the next whole second counts
        return book

    assert found(story().evidence(31)) == []
    only(story().evidence(32), "I1", "its chain ended with")
    book = story()
    book.claimed(key_of(32), after(32))
    book.called(book.rows[key_of(32)], after(32.1))
    book.ran_at(33)
    book.finished(book.rows[key_of(32)], after(35))
    only(book.evidence(40), "I1", "before")


def test_runs_before_a_paused_job_was_changed_to_a_fixed_delay_are_no_chain() -> None:
    """The change is a version of the same generation (9980000757)."""
    book = Book()
    row = book.claimed(key_of(10), after(10))
    book.called(row, after(10.1))
    book.ran_at(20)
    book.finished(row, after(25))
    book.pause(26)
    delay = parse_schedule("every 10s after finish", "UTC")
    book.becomes(27, job_with(book.job, schedule=delay, revision=3))
    assert found(book.evidence(30)) == []


def test_a_claim_that_is_taken_back_uncalled_forks_no_chain() -> None:
    """A lost change has sent a message for the instant at which the chain goes on (2030005490)."""
    book = Book("every 10s after finish")
    row = book.claimed(key_of(10), after(10))
    book.called(row, after(10.1))
    other = book.claimed(key_of(21), after(21), process="of the lost change")
    book.writes.append(RunWrite(after(21.1), "of the lost change", "discard_claim", other, None))
    del book.rows[key_of(21)]
    book.finished(row, after(25), finished_at=after(10.2))
    book.ran(key_of(21), 26)
    assert "I1" not in dict(found(book.evidence(27))), "late it is"


def test_of_a_real_stack_the_last_row_tells_of_all_generations() -> None:
    book = plain()
    book.pause(35)
    book.resume(55)
    book.ran_at(60)
    last = {JOB_ID: book.versions[-1:]}
    assert found(book.evidence(65, versions=last, writes=(), is_complete=False)) == []
    del book.rows[key_of(20)]
    book.deliveries = [each for each in book.deliveries if "T120020Z" not in each.run_id]
    only(book.evidence(65, versions=last, writes=(), is_complete=False), "I1", GENERATION_ID)


def simulated(chaos: Chaos | None, *, minutes: int) -> Evidence:
    start = datetime(2026, 12, 1, 12, tzinfo=UTC)
    loop, recorder = Loop(start, chaos), Recorder()
    options = Options(function_timeout_seconds=20)
    deployment = Deployment(loop, options, SimulatedTargets(loop, on_call=recorder.on_call))
    recorder.attach(deployment)
    api = Api.of(deployment)
    deployment.start()
    for number in range(4):
        target = {"type": "task", "name": "echo"}
        every = {"every": f"{10 + number}s"}
        body = job_body({"schedule": every, "target": target, "name": f"j{number}"})

        def create(body: object = body, number: int = number) -> object:
            return api.jobs.create("o", body, f"k{number}")  # type: ignore[arg-type]

        at = start + timedelta(seconds=number)
        deployment.invoke(f"create {number}", create, at=at, seconds=API_SECONDS)
    loop.run(loop.us_of(start + timedelta(minutes=minutes)))
    return recorder.evidence(start + timedelta(minutes=minutes - 1))


def test_a_calm_simulation_breaks_no_promise() -> None:
    evidence = simulated(None, minutes=20)
    assert len(evidence.runs) == len(evidence.deliveries) > 400
    assert len(evidence.writes) == 2 * len(evidence.runs) - sum(
        1 for row in evidence.runs if not row.is_final
    )
    assert found(evidence) == []


def test_interleaved_calls_break_no_promise() -> None:
    evidence = simulated(Chaos(7, Faults(), most_latency_us=50_000), minutes=5)
    assert all(each.is_untouched for each in evidence.deliveries if each.is_success)
    assert found(evidence) == []


def test_the_recorder_sees_what_is_lost() -> None:
    """The very evidence of a simulation, with one row taken out of it."""
    evidence = simulated(None, minutes=3)
    gone = evidence.runs[5]
    rest = [row for row in evidence.runs if row is not gone]
    only(replace(evidence, runs=rest, listed={}), "I1", f"at {gone.key.fire_at} has no row")


def test_one_run_of_an_occurrence_may_succeed() -> None:
    book = plain()
    book.died(key_of(40))
    book.ran(key_of(40, redrive=1), 45)
    letter = book.rows[key_of(40)]
    book.rows[key_of(40)] = replace(letter, settled=Resolution.REDRIVEN)
    assert found(book.evidence(30)) == []
    book.rows[key_of(40)] = replace(letter, status=RunStatus.SUCCEEDED, reason=None)
    assert any("one run of an occurrence may" in text for _, text in found(book.evidence(30)))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"status": RunStatus.RUNNING, "lease_until": None}, "nobody holds it"),
        ({"status": RunStatus.RETRYING, "next_attempt_at": None}, "nothing is to be retried"),
        ({"finished_at": None}, "ended at None"),
        ({"attempts": (AttemptRecord(2, NOON, NOON, RunError("x", "")),)}, "failed attempts"),
        ({"settled": Resolution.DISCARDED}, "as only dead letters are"),
    ],
)
def test_a_row_that_no_way_leads_to_is_found(members: dict[str, Any], words: str) -> None:
    book = plain()
    book.rows[key_of(20)] = replace(book.rows[key_of(20)], **members)
    assert any(words in text for _, text in found(book.evidence(30)))
