"""Evidence of a simulated deployment in order: by job, by run, by revision."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from carillon.audit import known
from carillon.audit.evidence import Gap, JobVersion
from carillon.audit.known import Indexed
from carillon.domain.job import Job, JobState
from carillon.domain.run import FINAL, NO_RUNS, Run, RunKey, RunKind, RunStatus
from tests.simulation.judging.evidence import Delivery, Evidence, RunWrite


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which a run was not final; `until_at` is None where it never became so."""

    key: RunKey
    from_at: datetime
    until_at: datetime | None

    def affects(self, begin: datetime, end: datetime) -> bool:
        return self.from_at <= end and (self.until_at is None or self.until_at >= begin)


class Known(known.Known):
    """All that rules ask of the evidence, found once."""

    evidence: Evidence

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        self._revisions = {
            job_id: {version.job.revision: version for version in versions}
            for job_id, versions in evidence.versions.items()
        }
        self._faults_of: dict[str, Sequence[datetime]] = {}
        self._commits = {
            job_id: [version.at for version in versions]
            for job_id, versions in evidence.versions.items()
        }

    @cached_property
    def writes(self) -> Mapping[RunKey, Sequence[RunWrite]]:
        """By key, in order."""
        writes: defaultdict[RunKey, list[RunWrite]] = defaultdict(list)
        for write in self.evidence.writes:
            row = write.after or write.before
            if row is not None:
                writes[row.key].append(write)
        return writes

    @cached_property
    def run_ids(self) -> Mapping[str, RunKey]:
        """The key of every run that was ever written."""
        keys = {key.run_id: key for key in self.writes}
        return {**keys, **{run_id: row.key for run_id, row in self.by_run_id.items()}}

    @cached_property
    def deliveries(self) -> Mapping[str, Sequence[Delivery]]:
        """By run id, in the order of their beginning."""
        deliveries: defaultdict[str, list[Delivery]] = defaultdict(list)
        for each in sorted(self.evidence.deliveries, key=lambda each: each.begun_at):
            deliveries[each.run_id].append(each)
        return deliveries

    @cached_property
    def unfinished(self) -> Mapping[str, Sequence[Span]]:
        """The spans in which the runs of a job, callbacks apart, were not final, by job id."""
        spans: defaultdict[str, list[Span]] = defaultdict(list)
        for key, writes in self.writes.items():
            if key.kind in NO_RUNS or key.kind is RunKind.CALLBACK:
                continue
            begun: datetime | None = None
            for write in writes:
                is_open = write.after is not None and write.after.status not in FINAL
                if is_open and begun is None:
                    begun = write.at
                elif not is_open and begun is not None:
                    spans[key.job_id].append(Span(key, begun, write.at))
                    begun = None
            if begun is not None:
                spans[key.job_id].append(Span(key, begun, None))
        return spans

    def _generations(self, versions: Sequence[JobVersion]) -> Sequence[Indexed]:
        return generations_of(versions, self.evidence.is_complete)

    def gaps_of(self, job_id: str) -> list[Gap]:
        """The backlogs of all segments that a job has been in."""
        versions = self.evidence.versions.get(job_id, ())
        segments = {version.job.segment for version in versions}
        return [gap for gap in self.evidence.gaps if gap.segment in segments]

    def was_called(self, run_id: str) -> bool:
        return run_id in self.deliveries

    def is_forsaken(self, row: Run) -> bool:
        """True if a row has no purpose: a process claimed it that had been stopped past its lease,
        for a generation that never was committed, or after another process had released the run,
        such as one whose day was moved. Nobody was called."""
        if row.status is not RunStatus.RUNNING or not self.evidence.is_complete:
            return False
        generations = {
            indexed.generation_id for indexed in self.generations.get(row.key.job_id, ())
        }
        writes = self.writes.get(row.key, ())
        was_released = any(write.method == "discard_claim" for write in writes[:-1])
        is_late = bool(writes) and writes[-1].at > (row.lease_until or writes[-1].at)
        is_orphaned = row.generation_id not in generations or (was_released and is_late)
        return is_orphaned and row.key.run_id not in self.deliveries

    def is_taken_along(self, write: RunWrite) -> bool:
        """True if a closed day may have moved the run, and its row went along: the run has another
        key from then on."""
        if write.before is None or write.after is not None:
            return False
        versions = self.evidence.versions.get(write.before.key.job_id, ())
        return any(version.job.spec.calendar is not None for version in versions)

    def times_in_others_hands(self, row: Run) -> int:
        """How often a message of another generation had the row first, and gave it back: of one
        that was never committed, too, whose entries stand until each is met."""
        return sum(
            write.method == "discard_claim"
            and write.before is not None
            and write.before.generation_id != row.generation_id
            for write in self.writes.get(row.key, ())
        )

    def faults_of(self, owner: str) -> Sequence[datetime]:
        """The faults that may delay an owner's runs, in order: all but those of others' targets."""
        if owner not in self._faults_of:
            others = Counter(
                at
                for at, job_id in self.evidence.target_faults
                if self.evidence.versions.get(job_id)
                and self.evidence.versions[job_id][-1].job.owner != owner
            )
            left = Counter(self.evidence.faults) - others
            self._faults_of[owner] = sorted(left.elements())
        return self._faults_of[owner]

    def is_calm(self, begin: datetime, end: datetime) -> bool:
        """True if nothing struck and no outage was between these instants."""
        evidence = self.evidence
        number = bisect_right(evidence.faults, end)
        is_struck = number > 0 and evidence.faults[number - 1] >= begin
        return not is_struck and not any(a <= end and b >= begin for a, b in evidence.outages)

    def job_at(self, job_id: str, revision: int | None) -> Job | None:
        """The row with this revision; of a real stack the last one is the best guess."""
        version = self._revisions.get(job_id, {}).get(revision or 0)
        if version is None and not self.evidence.is_complete:
            versions = self.evidence.versions.get(job_id)
            return versions[-1].job if versions else None
        return None if version is None else version.job

    def version_at(self, job_id: str, at: datetime) -> JobVersion | None:
        """The row in force at an instant, the commits of that instant included."""
        number = bisect_right(self._commits.get(job_id, []), at)
        return self.evidence.versions[job_id][number - 1] if number else None


def generations_of(versions: Sequence[JobVersion], is_complete: bool = True) -> list[Indexed]:
    """The generations of a job, oldest first.

    A generation ends at the pause after which another follows, else where that other begins; the
    last one at the pause or the deletion. What a completed job still owes is all that it has left:
    it may be completed only when that is nothing. Where only the last row is known it shows those
    before it, and their schedules are taken to be its own.
    """
    found: list[Indexed] = []
    if not is_complete and versions:
        last = versions[-1]
        found = [
            Indexed(old.generation_id, last.job, old.from_at, last.job.created_at, old.until_at)
            for old in reversed(last.job.replaced)
        ]
        versions = [last]
    of_one: list[JobVersion] = []
    for version in versions:
        if (
            of_one
            and version.job.generation.generation_id != of_one[0].job.generation.generation_id
        ):
            found.append(_indexed(of_one, version))
            of_one = []
        of_one.append(version)
    if of_one:
        found.append(_indexed(of_one, None))
    return found


def _indexed(versions: Sequence[JobVersion], following: JobVersion | None) -> Indexed:
    """The generation that these rows share."""
    first = versions[0].job
    stopped = (JobState.PAUSED, JobState.DELETED, JobState.RENAMED)
    end = next((version.job for version in versions if version.job.state in stopped), None)
    if end is not None:
        until_at: datetime | None = end.paused_at or end.updated_at
    else:
        end = None if following is None else following.job
        until_at = None if end is None else end.generation.from_at
    return Indexed(
        generation_id=first.generation.generation_id,
        job=first,
        from_at=first.generation.from_at,
        committed_at=versions[0].at,
        until_at=until_at,
        ended_revision=None if end is None else end.revision,
    )


def had_passed(indexed: Indexed, fire_at: datetime) -> bool:
    """True if an occurrence was late when its generation was committed, as one between the end of a
    pause and a resumption that came late: catch-up decides about it."""
    is_late = indexed.committed_at - indexed.from_at > timedelta(minutes=1)
    return is_late and fire_at + indexed.spread < indexed.committed_at
