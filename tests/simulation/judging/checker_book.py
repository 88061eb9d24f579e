"""Evidence by hand: a story of one job, told in a few words and then bent by tests."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from carillon.audit.evidence import Gap, JobVersion
from carillon.domain.calendar import CalendarUse
from carillon.domain.changes.handing_over import begun, ended, settled
from carillon.domain.job import Generation, Job
from carillon.domain.operation import Operation, OperationKind
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.schedules import CalendarRule
from tests.simulation.judging.checker import violations
from tests.simulation.judging.evidence import (
    Ack,
    Circumstances,
    Delivery,
    Evidence,
    Grant,
    RunWrite,
    Told,
)
from tests.support.jobs import make_job

OWNER = "owner-1"
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
JOB_ID = job_id_of(OWNER, "book")
GENERATION_ID = "01KBD0000000000000000000F1"
CLOSED = CalendarUse("days", CalendarRule.PREVIOUS_BUSINESS_DAY)


def after(seconds: float) -> datetime:
    """An instant after the job was made."""
    return NOON + timedelta(seconds=seconds)


def key_of(second: int, kind: RunKind = RunKind.SCHEDULED, **members: Any) -> RunKey:
    return RunKey(OWNER, JOB_ID, kind, after(second), **members)


def found(evidence: Evidence) -> list[tuple[str, str]]:
    return [(each.invariant, each.text) for each in violations(evidence)]


def only(evidence: Evidence, invariant: str, words: str) -> None:
    """There are violations, all of this invariant, and one says these words."""
    all_found = found(evidence)
    assert all_found, "nothing was found"
    assert {name for name, _ in all_found} == {invariant}, all_found
    assert any(words in text for _, text in all_found), all_found


class Book:
    """One job, made at noon. Methods add what happened; all `seconds` count from noon."""

    def __init__(self, schedule: str = "every 10s", **members: Any) -> None:
        job = make_job(
            schedule,
            owner=OWNER,
            job_id=JOB_ID,
            segment=0,
            generation=Generation(GENERATION_ID, NOON),
            created_at=NOON,
            updated_at=NOON,
            **members,
        )
        self.versions = [JobVersion(NOON, job)]
        self.rows: dict[RunKey, Run] = {}
        self.writes: list[RunWrite] = []
        self.deliveries: list[Delivery] = []
        self.acks: list[Ack] = []
        self.gaps: list[Gap] = []
        self.told: list[Told] = []
        self.grants: list[Grant] = []
        self.operations: list[Operation] = []
        self.faults: list[datetime] = []

    @property
    def job(self) -> Job:
        return self.versions[-1].job

    def becomes(self, second: float, job: Job) -> None:
        """Another row of the job is committed."""
        self.versions.append(JobVersion(after(second), job))

    def pause(self, second: float) -> None:
        self.becomes(second, self.job.paused(after(second)))

    def resume(self, second: float, generation_id: str = GENERATION_ID[:-1] + "2") -> None:
        from_at = after(int(second))
        self.becomes(
            second, self.job.in_new_generation(Generation(generation_id, from_at), after(second))
        )

    def delete(self, second: float) -> None:
        self.becomes(second, self.job.deleted(after(second), after(second + 9999)))

    def acknowledged(self, what: str, second: float, run_id: str = "") -> None:
        self.acks.append(Ack(what, JOB_ID, after(second - 0.1), after(second), run_id))

    def claimed(
        self, key: RunKey, at: datetime, *, process: str = "", attempt: int = 1, **members: Any
    ) -> Run:
        """A run is claimed; the process is named after the run unless it is said."""
        before = self.rows.get(key)
        name = process or f"{key.run_id}/{attempt}"
        row = Run(
            key=key,
            status=RunStatus.RUNNING,
            attempt=attempt,
            token=1 if before is None else before.token + 1,
            claim_id=f"claim of {name}",
            generation_id=GENERATION_ID,
            updated_at=at,
            expires_at=at + timedelta(days=30),
            lease_until=at + timedelta(seconds=60),
            started_at=at,
            attempt_started_at=at,
        )
        return self.written(replace(row, **members), at, name, "claim")

    def called(self, row: Run, at: datetime, *, process: str = "", **members: Any) -> None:
        """The target is called for 100 ms, and answers that it is done."""
        delivery = Delivery(
            run_id=row.key.run_id,
            job_id=JOB_ID,
            attempt=row.attempt,
            begun_at=at,
            ended_at=at + timedelta(seconds=0.1),
            is_done=True,
            process=process or f"{row.key.run_id}/{row.attempt}",
            job_read_at=at - timedelta(seconds=0.02),
            is_untouched=True,
            is_success=True,
            job_revision=self.job.revision,
        )
        self.deliveries.append(replace(delivery, **members))

    def finished(
        self,
        row: Run,
        at: datetime,
        status: RunStatus = RunStatus.SUCCEEDED,
        *,
        process: str = "",
        **members: Any,
    ) -> Run:
        ended = replace(row, status=status, updated_at=at, finished_at=at, lease_until=None)
        name = process or f"{row.key.run_id}/{row.attempt}"
        return self.written(replace(ended, **members), at, name, "finish")

    def written(self, row: Run, at: datetime, process: str, method: str) -> Run:
        before = self.rows.get(row.key)
        revision = None if method == "claim" and before is None else self.job.revision
        self.writes.append(RunWrite(at, process, method, before, row, revision))
        self.rows[row.key] = row
        return row

    def ran(self, key: RunKey, second: float | None = None) -> Run:
        """A run is claimed, called and succeeds, as it should; when due unless it is said."""
        at = key.fire_at if second is None else after(second)
        row = self.claimed(key, at)
        self.called(row, at + timedelta(seconds=0.05))
        return self.finished(row, at + timedelta(seconds=0.2))

    def died(self, key: RunKey, second: float | None = None) -> Run:
        """A run is claimed, called, refused by its target, and dead."""
        at = key.fire_at if second is None else after(second)
        row = self.claimed(key, at)
        self.called(row, at + timedelta(seconds=0.05), is_done=False, is_success=False)
        ended_at = at + timedelta(seconds=0.2)
        return self.finished(row, ended_at, RunStatus.DEAD, reason="refused")

    def tells(self, what: str, second: float, subject: str = JOB_ID) -> None:
        self.told.append(Told(what, subject, after(second)))

    def grants_at(self, gate: str, *seconds: float) -> None:
        self.grants += [Grant(OWNER, gate, after(second), after(second)) for second in seconds]

    def ran_at(self, *seconds: int) -> None:
        for second in seconds:
            self.ran(key_of(second))

    def given_back(self, key: RunKey, generation_id: str, after_seconds: float = 0.1) -> None:
        """A message of this generation claims a run when it is due, and withdraws its claim."""
        row = self.claimed(key, key.fire_at, process="another", generation_id=generation_id)
        at, revision = key.fire_at + timedelta(seconds=after_seconds), self.job.revision
        self.writes.append(RunWrite(at, "another", "discard_claim", row, None, revision))
        del self.rows[key]

    def skipped(self, key: RunKey, at: datetime, reason: str) -> Run:
        row = self.claimed(key, at)
        return self.finished(row, at + timedelta(seconds=0.1), RunStatus.SKIPPED, reason=reason)

    def passed_over(
        self, first: int, last: int, count: int, at: float, generation_id: str = GENERATION_ID
    ) -> None:
        """A catch-up covers a span with a row."""
        key = key_of(last, RunKind.MISSED, request_id=generation_id)
        row = Run(
            key=key,
            status=RunStatus.SKIPPED,
            attempt=0,
            token=0,
            claim_id="",
            generation_id=generation_id,
            updated_at=after(at),
            expires_at=after(9999),
            reason="catch_up",
            covers_from=after(first),
            covers_count=count,
        )
        self.written(row, after(at), "catch-up", "claim")

    def gap(self, begin: float, end: float) -> None:
        """No tick came for a while; then one made up for it."""
        self.gaps.append(Gap(0, after(begin), after(end), after(end + 5)))

    def evidence(self, until: float, **members: Any) -> Evidence:
        outages: Sequence[tuple[datetime, datetime]] = [
            (gap.from_at, gap.cleared_at or gap.until_at) for gap in self.gaps
        ]
        evidence = Evidence(
            versions={JOB_ID: self.versions},
            runs=list(self.rows.values()),
            deliveries=self.deliveries,
            acks=self.acks,
            until=after(until),
            writes=sorted(self.writes, key=lambda write: write.at),
            faults=sorted(self.faults),
            outages=outages,
            gaps=self.gaps,
            told=self.told,
            grants=self.grants,
            operations=self.operations,
            circumstances=Circumstances(function_timeout_seconds=20),
        )
        return replace(evidence, **members)


def handed_over(job: Job, to: str, second: int, place: Job | None = None) -> tuple[Job, Job]:
    """The tombstone of a job that is handed over to an owner, and the job that begins there."""
    operation = Operation(
        owner=job.owner,
        operation_id="01kbd0000000000000000000p1",
        kind=OperationKind.HAND_OVER,
        created_at=after(second),
        updated_at=after(second),
        expires_at=after(9999),
        per_minute=60,
        to=to,
    )
    generation = Generation(f"{GENERATION_ID[:-2]}{second}", after(second))
    tombstone = ended(job, operation, generation, after(second), after(9999))
    taken = begun(tombstone, operation, f"{GENERATION_ID[:-2]}{second + 1}", after(second), place)
    assert taken is not None
    return settled(tombstone), taken


def plain() -> Book:
    book = Book()
    book.ran_at(10, 20, 30)
    return book
