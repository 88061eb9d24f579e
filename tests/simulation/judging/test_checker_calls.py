"""What the checker says of calls, rows, pauses and skips: each rule meets a story that keeps it,
and one that breaks it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from carillon.domain.execution.transitions import EXECUTOR_DIED
from carillon.domain.policies import CatchUp, Overlap, RetryPolicy
from carillon.domain.run import AttemptRecord, Resolution, RunKind, RunStatus
from carillon.schedules import parse_schedule
from tests.simulation.judging.checker_book import (
    GENERATION_ID,
    JOB_ID,
    Book,
    after,
    found,
    key_of,
    only,
    plain,
)
from tests.simulation.judging.evidence import Circumstances, Evidence, RunWrite
from tests.support.jobs import job_with

SKIPPED, RETRYING, DEAD = RunStatus.SKIPPED, RunStatus.RETRYING, RunStatus.DEAD


def test_a_run_succeeds_once() -> None:
    book = plain()
    row = book.rows[key_of(10)]
    book.rows[key_of(10)] = replace(row, status=RunStatus.RUNNING)
    book.finished(row, after(12))
    texts = found(book.evidence(35))
    assert ("I2", f"{row.key.run_id} succeeded at {after(10.2)}, and at {after(12)} by"
            f" {row.key.run_id}/1") in texts  # fmt: skip


def test_no_call_comes_after_a_success_unless_its_process_was_struck() -> None:
    book = plain()
    row = book.rows[key_of(10)]
    book.called(row, after(15), process="late", is_untouched=False)
    book.deliveries[-1] = replace(book.deliveries[-1], attempt=2)
    assert found(book.evidence(35)) == []
    book.deliveries[-1] = replace(book.deliveries[-1], is_untouched=True)
    only(book.evidence(35), "I2", "after its success at")


def test_an_attempt_is_made_once() -> None:
    book = Book()
    row = book.claimed(key_of(10), after(10))
    book.called(row, after(10.1), is_success=False, is_untouched=False)
    book.called(row, after(10.2))
    book.finished(row, after(10.4))
    only(book.evidence(15), "I2", "attempt 1 of")


@pytest.mark.parametrize("is_known", [False, True])
def test_one_that_died_is_made_again_where_nobody_can_know_of_it(is_known: bool) -> None:
    """Seed 9977021993: the message that it was made for represented nothing by then. Whoever has
    met its row for another generation knows of it."""
    book = Book()
    row = book.claimed(key_of(10), after(10))
    book.called(row, after(10.1), is_success=False, is_untouched=False)
    if is_known:
        other = GENERATION_ID[:-1] + "2"
        row = book.claimed(key_of(10), after(40), process="other", generation_id=other)
    book.writes.append(RunWrite(after(40.5), "j/1", "discard_claim", row, None))
    again = book.claimed(key_of(10), after(50), process="next")
    book.called(again, after(50), process="next", may_be_late=True)
    book.finished(again, after(50.2), process="next")
    broken = [text for name, text in found(book.evidence(15)) if "attempt 1 of" in text]
    assert bool(broken) is is_known


def test_a_call_needs_a_claim_that_stands() -> None:
    book = Book()
    row = book.claimed(key_of(10), after(10), process="one")
    book.called(row, after(10.1), process="other", is_success=False)
    book.called(replace(row, attempt=2), after(10.2), process="one")
    book.finished(replace(row, attempt=2), after(10.4), process="one")
    only(book.evidence(15), "I2", "by other, while its row was running by one")


def test_a_success_needs_a_call_that_was_answered_so() -> None:
    book = Book()
    row = book.claimed(key_of(10), after(10))
    book.called(row, after(10.1), is_success=False)
    book.finished(row, after(10.3))
    only(book.evidence(15), "I2", "which no target has answered so")


def test_no_call_is_early() -> None:
    book = Book()
    book.ran(key_of(10), 9.9)
    assert found(book.evidence(15, tolerance_seconds=0.05)) == []
    only(book.evidence(15), "I3", "due at 2026-12-01 12:00:10+00:00, began 2026-12-01 12:00:09.95")


def retried(second: float) -> Book:
    book = Book()
    row = book.claimed(key_of(10), after(10))
    book.called(row, after(10.1), is_success=False)
    row = book.finished(row, after(10.3), RETRYING, finished_at=None, next_attempt_at=after(13))
    row = book.claimed(key_of(10), after(second), attempt=2)
    book.called(row, after(second + 0.1))
    book.finished(row, after(second + 0.3))
    return book


def test_no_retry_is_early() -> None:
    assert found(retried(13).evidence(15)) == []
    only(retried(12).evidence(15), "I3", "attempt 2 of")


def test_a_start_is_late_only_for_a_fault_or_an_outage() -> None:
    def story() -> Book:
        book = Book()
        book.ran(key_of(10), 12)
        return book

    only(story().evidence(15), "I3", "was first called at 2026-12-01 12:00:12.05")
    book = story()
    book.faults = [after(9)]
    assert found(book.evidence(15)) == []
    book.faults = [after(-1000)]
    only(book.evidence(15), "I3", "was first called at")
    assert found(story().evidence(15, outages=[(after(5), after(11))])) == []
    waiting = Book(overlap=Overlap.QUEUE_ONE)
    waiting.ran(key_of(10), 12)
    assert found(waiting.evidence(15)) == []


def taken_over(at: float, token: int = 2) -> Book:
    book = Book()
    row = book.claimed(key_of(10), after(10), process="one")
    book.called(row, after(10.1), process="one", is_success=False, is_untouched=False)
    row = book.claimed(key_of(10), after(at), process="two", attempt=2, token=token)
    book.called(row, after(at + 0.1), process="two")
    book.finished(row, after(at + 0.3), process="two")
    return book


def test_a_run_is_taken_over_when_its_lease_has_lapsed_under_a_greater_token() -> None:
    assert found(taken_over(71).evidence(15)) == []
    only(taken_over(30).evidence(15), "I4", "took over a run whose lease lasts until")
    only(taken_over(71, token=1).evidence(15), "I4", "wrote token 1 over 1")


def test_nobody_writes_over_the_claim_of_another() -> None:
    book = taken_over(71)
    book.writes[-1] = replace(book.writes[-1], process="one")
    texts = [text for name, text in found(book.evidence(15)) if name == "I4"]
    assert any("one wrote over the claim of two" in text for text in texts)


@pytest.mark.parametrize(
    ("before", "status", "words"),
    [(10, RunStatus.RUNNING, "succeeded became running"), (20, SKIPPED, "absent became retrying")],
)
def test_a_status_changes_as_it_may(before: int, status: RunStatus, words: str) -> None:
    book = plain()
    row = book.rows[key_of(10)]
    if before == 10:
        book.claimed(key_of(10), after(80), attempt=2)
        book.finished(book.rows[key_of(10)], after(81), SKIPPED, reason="paused")
    else:
        odd = replace(row, key=key_of(10, RunKind.MANUAL), status=RETRYING, attempt=1)
        book.written(odd, after(31), "odd", "claim")
    assert any(name == "I4" and words in text for name, text in found(book.evidence(35)))


def test_a_dead_letter_is_written_again_when_it_is_settled_and_only_then() -> None:
    def story(settled: Resolution | None) -> Evidence:
        book = Book()
        row = book.claimed(key_of(10), after(10))
        book.called(row, after(10.1), is_success=False)
        row = book.finished(row, after(10.3), DEAD, reason="refused")
        book.written(replace(row, settled=settled, token=2, note="x"), after(12), "api", "claim")
        return book.evidence(15)

    assert found(story(Resolution.DISCARDED)) == []
    only(story(None), "I4", "was written again")


def test_a_settled_dead_letter_agrees_with_the_run_that_was_made_of_it() -> None:
    def story(settled: Resolution, made: RunStatus | None) -> Evidence:
        book = Book()
        row = book.claimed(key_of(10), after(10))
        book.called(row, after(10.1), is_success=False)
        row = book.finished(row, after(10.3), DEAD, reason="refused")
        if made is not None:
            again = replace(row, key=row.key.redriven, status=RunStatus.SCHEDULED, token=0)
            book.written(again, after(11), "api", "claim")
            book.written(replace(again, status=made, token=1), after(11.5), "api", "claim")
        book.written(replace(row, settled=settled, token=2), after(12), "api", "claim")
        return book.evidence(15)

    assert found(story(Resolution.DISCARDED, RunStatus.CANCELLED)) == []
    assert found(story(Resolution.REDRIVEN, RunStatus.CANCELLED)) == []
    only(story(Resolution.REDRIVEN, None), "settled", "is redriven, and there is no")
    texts = [name for name, _ in found(story(Resolution.DISCARDED, RunStatus.RUNNING))]
    assert "settled" in texts


def test_dead_letters_say_why_and_are_exhausted_only_after_the_last_attempt() -> None:
    def story(reason: str, most: int) -> Evidence:
        book = Book(retry=RetryPolicy(max_attempts=most))
        row = book.claimed(key_of(10), after(10))
        book.called(row, after(10.1), is_success=False)
        book.finished(row, after(10.3), DEAD, reason=reason)
        return book.evidence(15)

    assert found(story("exhausted", 1)) == []
    only(story("bad luck", 1), "dead", "for 'bad luck'")
    only(story("exhausted", 3), "attempts", "exhausted at attempt 1, of 3")


def test_nobody_dies_of_nothing() -> None:
    def story(*faults: float) -> Evidence:
        book = Book(retry=RetryPolicy(max_attempts=1))
        row = book.claimed(key_of(10), after(10))
        book.called(row, after(10.1), is_success=False)
        ended = (AttemptRecord(1, after(10.1), after(10.3), EXECUTOR_DIED),)
        book.finished(row, after(10.3), DEAD, reason="executor_died", attempts=ended)
        book.faults += map(after, faults)
        return book.evidence(15)

    assert found(story(5)) == []
    only(story(), "dead", "and no fault had struck")
    only(story(12), "dead", "and no fault had struck")


def test_no_more_attempts_are_made_than_the_job_allows() -> None:
    book = retried(13)
    book.versions = [replace(v, job=job_with(v.job, retry=RetryPolicy(max_attempts=1)))
                     for v in book.versions]  # fmt: skip
    only(book.evidence(15), "attempts", "attempt 2 of")


@pytest.mark.parametrize("what", ["pause", "delete"])
def test_no_run_starts_after_an_acknowledged_rest(what: str) -> None:
    def story(read_at: float, claimed_at: float, kind: RunKind = RunKind.MANUAL) -> Evidence:
        book = Book()
        book.ran_at(10)
        act: Callable[[float], None] = book.pause if what == "pause" else book.delete
        act(19)
        book.acknowledged(what, 20.5)
        row = book.claimed(key_of(20, kind), after(claimed_at), effective_at=after(20))
        # By what it had read, the job was active still.
        book.called(row, after(21.2), job_read_at=after(read_at), job_revision=1)
        book.finished(row, after(21.4))
        return book.evidence(35)

    assert found(story(20.4, 20.1, RunKind.BACKFILL)) == []
    only(story(20.6, 20.1, RunKind.BACKFILL), what, "which had read at")
    only(story(20.4, 21.0, RunKind.BACKFILL), what, "which had claimed at")
    by_hand = [name for name, _ in found(story(20.6, 20.1))]
    assert by_hand == (["delete"] if what == "delete" else [])


@pytest.mark.parametrize(("claimed_at", "is_broken"), [(20.1, False), (21.0, True)])
def test_what_a_chunk_calls_was_claimed_with_the_chunk(claimed_at: float, is_broken: bool) -> None:
    """Seeds 6700000815 and 6710001017: it is told at the call, or once a call that lasts has its
    row."""
    book, chunk_claimed_at = Book(), after(claimed_at)
    book.ran_at(10)
    book.pause(19)
    book.acknowledged("pause", 20.5)
    row = book.claimed(key_of(20), after(21.2))
    read_at = after(20.4)
    book.called(
        row, after(21.2), job_read_at=read_at, job_revision=1, chunk_claimed_at=chunk_claimed_at
    )
    book.finished(row, after(21.4))
    assert ("pause" in {name for name, _ in found(book.evidence(35))}) is is_broken


@pytest.mark.parametrize(("asked_at", "is_broken"), [(8.4, False), (9.6, True)])
def test_nothing_is_called_long_after_its_chunk_was_claimed(
    asked_at: float, is_broken: bool
) -> None:
    """Though its process stood still: others may have the chunk. Seed 9986000509: it may do so
    after its last look at the clock."""
    book = Book()
    row = book.claimed(key_of(10), after(10.1))
    book.called(row, after(10.2))
    late = replace(book.deliveries[-1], is_untouched=False, asked_at=after(asked_at))
    book.deliveries[-1] = replace(late, chunk_claimed_at=after(7.5))
    book.finished(row, after(10.4))
    assert [name for name, _ in found(book.evidence(15))] == (["I2"] if is_broken else [])


def test_an_acknowledgement_is_kept() -> None:
    book = plain()
    book.acknowledged("pause", 15)
    only(book.evidence(35), "I1", "the job never was paused")
    book = plain()
    book.acknowledged("run", 15, key_of(15, RunKind.MANUAL).run_id)
    only(book.evidence(35), "I1", "there is no run")
    only(Book().evidence(0, versions={}, acks=[book.acks[0], replace(book.acks[0], what="create",
         job_id="other")]), "I1", "there is no such job")  # fmt: skip


def overlapped(begun: float, overlap: Overlap = Overlap.QUEUE_ONE) -> Book:
    """One run takes from 12:00:10 to 12:00:25."""
    book = Book(overlap=overlap)
    row = book.claimed(key_of(10), after(10))
    book.called(row, after(10.1), ended_at=after(24.9))
    book.ran(key_of(20), begun)
    book.finished(row, after(25))
    return book


def test_no_run_starts_beside_another_where_the_job_forbids_it() -> None:
    assert found(overlapped(25.1).evidence(29)) == []
    assert found(overlapped(20, Overlap.ALLOW).evidence(29)) == []
    only(overlapped(20).evidence(29), "overlap", "had not ended")


def test_a_skip_for_overlap_needs_another_run() -> None:
    book = Book(overlap=Overlap.SKIP)
    row = book.claimed(key_of(10), after(10))
    book.called(row, after(10.1), ended_at=after(24.9))
    book.skipped(key_of(20), after(20), "overlap")
    book.finished(row, after(25))
    assert found(book.evidence(29)) == []
    book = Book(overlap=Overlap.SKIP)
    book.ran_at(10)
    book.skipped(key_of(20), after(20), "overlap")
    only(book.evidence(29), "skip", "no other run was active")


@pytest.mark.parametrize("reason", ["paused", "deleted"])
def test_a_skip_for_the_state_of_the_job_needs_that_state(reason: str) -> None:
    book = Book()
    book.ran_at(10)
    act = book.pause if reason == "paused" else book.delete
    act(19.5)
    book.skipped(key_of(20), after(20), reason)
    assert found(book.evidence(35)) == []
    book = Book()
    book.skipped(key_of(10), after(10), reason)
    only(book.evidence(15), "skip", f"the job was not {reason}")


def test_a_skip_for_a_change_needs_one_that_left_the_occurrence_out() -> None:
    def story(schedule: str) -> Evidence:
        book = Book()
        book.ran_at(10)
        changed = replace(book.job, schedule=parse_schedule(schedule))
        generation = replace(book.job.generation, generation_id="2", from_at=after(15))
        book.becomes(15, changed.in_new_generation(generation, after(15)))
        book.skipped(key_of(20), after(20), "changed")
        return book.evidence(25)

    assert found(story("every 1h")) == []
    only(story("every 20s"), "skip", "it is an occurrence of the generation that the row named")


@pytest.mark.parametrize(
    ("reason", "members", "words"),
    [
        ("misfire", {}, "the job has catch-up latest"),
        ("misfire", {"grace": 5, "catch_up": CatchUp.SKIP}, "with 5 s of grace"),
        ("spacing", {}, "the job has no tolerance"),
        ("spacing", {"tolerance": 2}, "no other run had begun"),
        ("calendar", {}, "the job follows no calendar"),
        ("catch_up", {}, "no generation of it skips"),
        ("catch_up", {"catch_up": CatchUp.SKIP}, "it lay in no outage"),
        ("weather", {}, "is skipped for 'weather'"),
    ],
)
def test_a_skip_says_what_was_so(reason: str, members: dict[str, Any], words: str) -> None:
    book = Book(**members)
    book.skipped(key_of(10), after(10), reason)
    only(book.evidence(15), "skip", words)


@pytest.mark.parametrize(("starts_at", "is_true"), [(15, True), (4, False)])
def test_a_start_that_a_rate_grants_too_late_is_a_reason(starts_at: int, is_true: bool) -> None:
    """It may be used ten seconds later than it is granted."""
    book = Book(grace=14, catch_up=CatchUp.SKIP)
    row = book.claimed(key_of(10), after(10))
    note = f"it may start at {after(10 + starts_at):%Y-%m-%dT%H:%M:%SZ}, too late for 14 s of grace"
    book.finished(row, after(10.1), RunStatus.SKIPPED, reason="misfire", note=note)
    if is_true:
        assert found(book.evidence(15)) == []
    else:
        only(book.evidence(15), "skip", "with 14 s of grace")


def test_skips_that_are_true() -> None:
    book = Book(grace=5, catch_up=CatchUp.SKIP, tolerance=2)
    book.skipped(key_of(10), after(16), "misfire")
    book.gap(15, 25)
    book.skipped(key_of(20), after(26), "catch_up")
    book.ran(key_of(30))
    book.skipped(key_of(40), after(37), "spacing")
    assert found(book.evidence(45)) == []


def test_what_a_tick_catches_up_on_comes_at_its_pace() -> None:
    """Of others too, and of generations that never were committed, whose messages leave no row."""
    book = Book()
    book.ran(key_of(10), 5000)
    book.gap(5, 15)
    pace = Circumstances(catch_up_per_minute=4)
    assert "I3" not in dict(
        found(book.evidence(15, circumstances=pace, caught_up={(0, "a"): 90, (1, "b"): 80}))
    )
    bent = book.evidence(15, circumstances=pace, caught_up={(0, "a"): 70})
    assert "was first called at" in dict(found(bent))["I3"]


def test_what_strikes_in_the_targets_of_others_is_no_reason_to_be_late() -> None:
    book = plain()
    book.ran(key_of(40), 60)
    book.faults.append(after(45))
    own, other = (after(45), JOB_ID), (after(45), "other")
    version = replace(book.versions[0], job=replace(book.job, owner="owner-2", job_id="other"))
    versions = {JOB_ID: book.versions, "other": [version]}
    assert "I3" not in dict(found(book.evidence(45, versions=versions, target_faults=[own])))
    bent = book.evidence(45, versions=versions, target_faults=[other])
    assert "was first called at" in dict(found(bent))["I3"]


@pytest.mark.parametrize(
    ("times", "second", "is_broken"),
    [(1, 15.2, False), (2, 15.2, False), (2, 15.8, True), (3, 19.2, False), (3, 19.8, True)],
)
def test_messages_of_other_generations_may_have_a_row_first(
    times: int, second: float, is_broken: bool
) -> None:
    """Seeds 9890000751, 9890000848 and 9920000751: of requests that died before they committed."""
    book = Book()
    for number in range(times):
        book.given_back(key_of(10), f"orphaned {number}")
    book.ran(key_of(10), second)
    told = [rule for rule, _ in found(book.evidence(15))]
    assert told == ["I3"] * is_broken
    book = Book()
    book.given_back(key_of(10), GENERATION_ID)
    book.ran(key_of(10), second)
    assert [rule for rule, _ in found(book.evidence(15))] == ["I3"]
