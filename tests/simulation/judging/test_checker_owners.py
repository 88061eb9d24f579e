"""The checker's rules about owners beside each other, and about generations that have ended."""

from dataclasses import replace

import pytest

from carillon.audit.evidence import Gap
from carillon.domain.job import Generation
from carillon.domain.policies import CatchUp, Overlap
from carillon.domain.run import RunStatus
from tests.simulation.judging.checker_book import (
    GENERATION_ID,
    OWNER,
    Book,
    after,
    found,
    key_of,
    only,
)
from tests.simulation.judging.evidence import Circumstances, RunWrite
from tests.support.jobs import job_with

PERMITS = Circumstances(owner_concurrent_runs=1)
PACE = Circumstances(catch_up_per_minute=12)


def lasting(book: Book, second: int, until: float) -> None:
    """A run of this time is called for so long."""
    row = book.claimed(key_of(second), after(second))
    book.called(row, after(second), ended_at=after(until))
    book.finished(row, after(until))


def test_an_owner_is_held_to_a_number_of_runs_that_last() -> None:
    book = Book(overlap=Overlap.ALLOW)
    lasting(book, 10, 40)
    book.ran(key_of(20))
    assert found(book.evidence(25, circumstances=PERMITS)) == []
    book.ran(key_of(30))
    only(book.evidence(35, circumstances=PERMITS), "permits", "1 runs of owner-1 may last at once")
    assert found(book.evidence(35)) == [], "there is no limit"
    struck = [replace(each, is_untouched=False) for each in book.deliveries[:1]]
    calls = [*struck, *book.deliveries[1:]]
    assert found(book.evidence(35, circumstances=PERMITS, deliveries=calls)) == []


@pytest.mark.parametrize(("generation_id", "is_broken"), [("", True), ("another", False)])
def test_one_that_has_waited_is_called_where_a_permit_is_free(
    generation_id: str, is_broken: bool
) -> None:
    book = Book(overlap=Overlap.ALLOW)
    lasting(book, 10, 40)
    row = book.claimed(key_of(20), after(20))
    waiting = replace(row, status=RunStatus.SCHEDULED, attempt=0, lease_until=None, waits=1)
    waiting = replace(waiting, generation_id=generation_id or row.generation_id)
    book.written(waiting, after(20.1), f"{row.key.run_id}/1", "finish")
    book.ran(key_of(20), 21)
    told = [rule for rule, _ in found(book.evidence(25, circumstances=PERMITS))]
    assert told == ["permits"] * is_broken


def caught_up(last: int, note: str | None = None) -> Book:
    """Of six occurrences that are late the last one starts at `last`; it has waited for what `note`
    says."""
    book = Book(overlap=Overlap.ALLOW, catch_up=CatchUp.ALL)
    book.gaps.append(Gap(0, after(5), after(65), after(70), taken_up_at=after(68)))
    for number in range(5):
        book.ran(key_of(10 + 10 * number), 70 + 5 * number)
    if note is not None:
        row = book.claimed(key_of(60), after(95))
        waiting = replace(row, status=RunStatus.SCHEDULED, attempt=0, lease_until=None, note=note)
        book.written(waiting, after(95.1), f"{row.key.run_id}/1", "finish")
    book.ran(key_of(60), last)
    return book


@pytest.mark.parametrize(
    ("note", "is_broken"),
    [
        ("waits for its owner's permits, held by 3 runs", False),
        ("waits for a start under the rate", True),
    ],
)
def test_what_waits_for_a_permit_may_start_later(note: str, is_broken: bool) -> None:
    caught_up_on = {(0, OWNER): 6, (1, OWNER): 9}
    book = caught_up(115, note)
    told = found(book.evidence(65, circumstances=PACE, caught_up=caught_up_on))
    assert [rule for rule, _ in told] == ["share"] * is_broken


@pytest.mark.parametrize(("last", "is_broken"), [(105, False), (115, True)])
def test_what_is_late_starts_within_its_owners_share(last: int, is_broken: bool) -> None:
    book = caught_up(last)
    evidence = book.evidence(65, circumstances=PACE, caught_up={(0, OWNER): 6, (1, OWNER): 9})
    if not is_broken:
        assert found(evidence) == []
        noise = replace(book.rows[key_of(60)], key=replace(key_of(60), job_id="nobodys"))
        bare = replace(noise, status=RunStatus.SKIPPED, reason="deleted", attempts=())
        told = found(replace(evidence, runs=[*evidence.runs, bare]))
        assert "share" not in dict(told), "a run of a job that never was committed"
        return
    only(evidence, "share", "its owner's share allows for")
    assert found(replace(evidence, faults=[after(80)])) == []
    assert found(replace(evidence, faults=[after(-60)])) == [], "the clock of the tick may be off"
    only(replace(evidence, faults=[after(-120)]), "share", "its owner's share allows for")
    assert found(replace(evidence, outages=[*evidence.outages, (after(100), after(101))])) == []


def test_what_another_generations_message_had_first_may_start_later() -> None:
    book = caught_up(115)
    first = next(write.after for write in book.writes if write.at == after(115))
    assert first is not None
    other = replace(first, generation_id="orphaned", updated_at=after(95))
    book.writes.append(RunWrite(after(95), "another", "claim", None, other))
    book.writes.append(RunWrite(after(95.1), "another", "discard_claim", other, None, 1))
    caught_up_on = {(0, OWNER): 6, (1, OWNER): 9}
    assert found(book.evidence(65, circumstances=PACE, caught_up=caught_up_on)) == []


def ended() -> Book:
    """Deleted a while after the job was made; what was announced by then came yet."""
    book = Book("every 20s")
    book.ran_at(*range(20, 621, 20))
    book.delete(625)
    book.skipped(key_of(680), after(680), "deleted")
    return book


def test_of_a_generation_that_has_ended_nothing_more_comes() -> None:
    book = ended()
    assert found(book.evidence(700)) == []
    book.skipped(key_of(1100), after(1100), "deleted")
    only(book.evidence(1200), "gone", "came yet")
    book.faults.append(after(620))
    assert found(book.evidence(1200)) == []


@pytest.mark.parametrize(
    ("begun", "ended", "is_broken"), [(0, 30, False), (43, 60.3, False), (0, 90, True)]
)
def test_one_that_ends_within_a_minute_may_leave_its_entries(
    begun: int, ended: float, is_broken: bool
) -> None:
    """Seeds 9910002913 and 10000310314: its segment was new, and no tick had been there yet."""
    book = Book("* * * * *")
    begins = Generation(GENERATION_ID, after(begun))
    book.versions[0] = replace(book.versions[0], job=job_with(book.job, generation=begins))
    if ended > 60:
        book.ran_at(60)
    book.delete(ended)
    book.skipped(key_of(780), after(780), "deleted")
    assert [rule for rule, _ in found(book.evidence(900))] == ["gone"] * is_broken


def test_what_an_ended_generation_has_sent_is_met_once() -> None:
    book = ended()
    book.faults.append(after(620))
    book.skipped(key_of(1400), after(1400), "deleted")
    book.skipped(key_of(5000), after(5000), "deleted")
    only(book.evidence(5100), "gone", f"was met at {after(1400.1)}")
    book.gap(1300, 1350)
    book.gaps[-1] = replace(book.gaps[-1], cleared_at=after(1500))
    assert found(book.evidence(5100)) == []
