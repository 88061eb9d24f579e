"""The evidence about one run of the system, simulated or real: the basis of the checker's
judgement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from carillon.domain.job import Job
from carillon.domain.run import Run


@dataclass(frozen=True, slots=True)
class JobVersion:
    """A committed row of a job. `at` is when it was committed, in true time."""

    at: datetime
    job: Job


@dataclass(frozen=True, slots=True)
class Gap:
    """The backlog of a segment: effective times in [from_at, until_at) that no tick had announced
    in time. It was taken up at `taken_up_at` (None: unknown), and worked off at `cleared_at`; None
    where it never was."""

    segment: int
    from_at: datetime
    until_at: datetime
    cleared_at: datetime | None = None
    taken_up_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """`versions` by job id, oldest first; of a real stack the last version alone is known.

    `runs` are the rows at the end. `until`: everything due up to here must have ended at the end.
    `gaps` are the backlogs, by which alone a catch-up may skip something.

    For a deployment that continues to run there are more bounds: occurrences up
    to `since` are not asked for, nor those in a gap that is not worked off; what was written after
    `rest_at`, or is under a lease then, is under way; and what lies beyond `until` is not known.
    """

    versions: Mapping[str, Sequence[JobVersion]]
    runs: Sequence[Run]
    until: datetime
    gaps: Sequence[Gap] = ()
    since: datetime | None = None
    rest_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """`invariant` is I1 .. I4 or the name of another promise; `text` is the expectation that
    failed."""

    invariant: str
    job_id: str
    text: str
    fire_at: datetime | None = field(default=None)
