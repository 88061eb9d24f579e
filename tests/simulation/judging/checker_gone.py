"""What is promised of generations that have ended: their entries go, and so they cost nothing
more."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from carillon.api.jobs.planning import LONGEST_RENAMING
from carillon.audit.evidence import JobVersion, Violation
from carillon.audit.known import Indexed
from carillon.domain.job import Job, JobState
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.domain.wheel.entry import entries_of
from carillon.schedules import SlotKind
from tests.simulation.judging.known import Known

_ANNOUNCED = timedelta(minutes=7)
"""The longest look-ahead of any worker of ticks, and what ticks are late at most where nothing has
struck: what is for later is not announced by then."""
_OUTLIVED = timedelta(minutes=12)
"""What comes later after the last change of its job's row tells that its entry is still there."""
_BEFORE = timedelta(minutes=3)
"""Nothing must have struck for so long that ticks have dispatched what is due."""
_FOR_EVER = datetime.max.replace(tzinfo=UTC)
_ORPHANED = ("paused", "deleted", "changed")


def goes_on(known: Known) -> Iterator[Violation]:
    """Once a generation has ended, no occurrence of it comes that was not announced by then, where
    nothing struck at its end; and none of the same minute of an hour comes twice, whatever struck.

    Of generations all whose entries stand, without a window; not while a backlog is worked off.
    The entries of one that ends within a minute stay where no tick has been there in between, as in
    a new segment: what is owed before that is to be sent.
    """
    if not known.evidence.is_complete:
        return
    for job_id, generations in known.generations.items():
        for indexed in generations:
            ended_at = _ended_at(known, indexed)
            if ended_at is None or not _stands(indexed):
                continue
            noise = [
                row
                for row in known.rows.get(job_id, ())
                if row.key.kind is RunKind.SCHEDULED
                and row.generation_id == indexed.generation_id
                and row.status is RunStatus.SKIPPED
                and row.reason in _ORPHANED
                and row.key.fire_at > ended_at + _ANNOUNCED
            ]
            is_brief = ended_at - indexed.from_at < timedelta(minutes=1)
            if noise and not is_brief and known.is_calm(ended_at - _BEFORE, ended_at + _ANNOUNCED):
                last = max(noise, key=lambda row: row.key.fire_at)
                text = (
                    f"{indexed.generation_id} ended at {ended_at}, and {last.key.run_id} came yet"
                )
                yield Violation("gone", job_id, text, last.key.fire_at)
            outlived = known.evidence.versions[job_id][-1].at + _OUTLIVED
            met = [row for row in noise if row.key.fire_at > outlived]
            yield from _met_again(known, indexed, met)


def renamed(known: Known) -> Iterator[Violation]:
    """A renamed job runs nothing that comes due after it was renamed, and the job that it was
    renamed to begins there, at once or within a minute.

    A job that is to be spread has a generation that begins in a minute or so: its tombstone then
    begins there too, and what comes due before is the old name's.
    """
    for job_id, versions in known.evidence.versions.items():
        old_id, first = versions[0].job.renamed_from, versions[0]
        of_old = known.evidence.versions.get(old_id, ())
        left = [number for number, v in enumerate(of_old) if v.job.renamed_to == job_id]
        if not left:
            continue
        # A new job may have been given the old name before the request got further: it is renamed
        # then, too, and the last of them is the one that is continued.
        tombstone = [of_old[number] for number in left if of_old[number].at <= first.at][-1]
        began_at, ended_at = first.job.generation.from_at, tombstone.job.generation.from_at
        is_late = first.at - ended_at > LONGEST_RENAMING
        if began_at < ended_at or (began_at > ended_at and not is_late):
            text = f"it begins at {began_at}, and {old_id} ended at {ended_at}"
            yield Violation("renamed", job_id, text, began_at)
        for number in left:
            yield from _ran_as_before(known, of_old[number:])


def handed_over(known: Known) -> Iterator[Violation]:
    """A job that is handed over begins under its new owner at the instant at which it has ended
    under the former one, however late, or goes on there: it is never nobody's. What came due since
    is no run of the former one's."""
    for job_id, versions in known.evidence.versions.items():
        for number, version in enumerate(versions):
            mark = version.job.handed_to
            before = None if number == 0 else versions[number - 1].job.handed_to
            if mark is None or (before is not None and before.ended_id == mark.ended_id):
                continue
            following = versions[number + 1 :]
            taken = _taken(known, version.job, mark.ended_id)
            if taken is None and not following and known.evidence.is_complete:
                text = f"it was handed over to {mark.owner} at {version.at}, and is nobody's"
                yield Violation("handed over", job_id, text)
            ended_at = version.job.generation.from_at
            if taken is not None and taken.job.generation.from_at != ended_at:
                text = (
                    f"it ended at {ended_at}, and is {mark.owner}'s from"
                    f" {taken.job.generation.from_at} on"
                )
                yield Violation("handed over", job_id, text, ended_at)
            if taken is not None:
                yield from _ran_as_before(known, versions[number:])


def _taken(known: Known, tombstone: Job, ended_id: str) -> JobVersion | None:
    """The first version of the new owner's job."""
    versions = known.evidence.versions.get(tombstone.renamed_to, ())
    marks = ((version, version.job.handed_from) for version in versions)
    return next((v for v, mark in marks if mark and mark.ended_id == ended_id), None)


def under_its_owner(known: Known) -> Iterator[Violation]:
    """Each run is called as its own owner's, whose secrets it gets, whoever has its job by then."""
    for each in known.evidence.deliveries:
        key = known.run_ids.get(each.run_id)
        if key is not None and each.owner not in ("", key.owner):
            text = f"{each.run_id} of {key.owner} was called as {each.owner}'s at {each.begun_at}"
            yield Violation("owner", each.job_id, text, key.fire_at)


def _ran_as_before(known: Known, versions: Sequence[JobVersion]) -> Iterator[Violation]:
    """What came due after the first of these versions, the tombstone of a renaming, and ran."""
    tombstone = versions[0]
    last, old_id = tombstone.job.generation, tombstone.job.job_id
    # Later ones are of a new job that was given the name.
    others = [v.job.generation for v in versions if v.job.generation != last]
    free_until = others[0].from_at if others else _FOR_EVER
    ended_at = max(tombstone.at, last.from_at)
    for row in known.rows.get(old_id, ()):
        is_new = row.key.kind is RunKind.SCHEDULED and row.key.fire_at > ended_at
        is_own = row.key.fire_at <= free_until and not row.key.redrive
        if is_new and is_own and known.was_called(row.key.run_id):
            text = f"{row.key.run_id} ran, though the job was renamed at {ended_at}"
            yield Violation("renamed", old_id, text, row.key.fire_at)


def _met_again(known: Known, indexed: Indexed, noise: Sequence[Run]) -> Iterator[Violation]:
    """Whoever meets what an entry has sent in vain removes the entry."""
    first: dict[int, Run] = {}
    for row in sorted(noise, key=lambda row: row.key.fire_at):
        before = first.setdefault(row.key.fire_at.minute, row)
        met_at = before.updated_at
        is_open = any(a <= met_at <= b for a, b in _backlogs(known, indexed))
        if not is_open and row.key.fire_at > max(met_at, before.key.fire_at) + _ANNOUNCED:
            text = f"{row.key.run_id} came, though {before.key.run_id} was met at {met_at}"
            yield Violation("gone", row.key.job_id, text, row.key.fire_at)


def _backlogs(known: Known, indexed: Indexed) -> Iterator[tuple[datetime, datetime]]:
    """When the generation's segment was behind."""
    for gap in known.evidence.gaps:
        if gap.segment == indexed.job.segment:
            yield gap.from_at, gap.cleared_at or datetime.max.replace(tzinfo=gap.from_at.tzinfo)


def _ended_at(known: Known, indexed: Indexed) -> datetime | None:
    """When the row was written that ended the generation of an active job."""
    versions = known.evidence.versions[indexed.job.job_id]
    own = [v for v in versions if v.job.generation.generation_id == indexed.generation_id]
    ended = next((v for v in own if v.job.state is not JobState.ACTIVE), None)
    if ended is not None:
        return ended.at if ended is not own[0] else None
    # By their order: two may be of one instant.
    following = versions[versions.index(own[-1]) + 1 :]
    return following[0].at if following else None


def _stands(indexed: Indexed) -> bool:
    """Whether ticks come to each of its entries once in an hour."""
    job = indexed.job
    if job.spread_seconds or job.spec.calendar is not None or not indexed.is_computable:
        return False
    return all(entry.slot.kind is not SlotKind.DATED for entry in entries_of(job))
