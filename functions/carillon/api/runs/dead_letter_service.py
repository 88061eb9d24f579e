"""Dead letters one by one, apart from HTTP: list, redrive, discard."""

from carillon.api.http.errors import JobGoneError, MissingError, NotADeadLetterError
from carillon.api.jobs.service import JobService
from carillon.api.runs.service import run_key_of
from carillon.clock import Clock
from carillon.domain.run import Run
from carillon.services.redrive import Redriver, Refusal
from carillon.stores.ports import DeadLetterFilter, Page, RunStore


class DeadLetterService:
    """One owner's dead letters; raises StoreUnavailableError and QueueUnavailableError.

    Every method that names a run raises MissingError if the owner has none of that id, and
    NotADeadLetterError if it cannot be settled so.
    """

    def __init__(self, jobs: JobService, runs: RunStore, redriver: Redriver, clock: Clock) -> None:
        self._jobs = jobs
        self._runs = runs
        self._redriver = redriver
        self._clock = clock

    def list(self, owner: str, limit: int, cursor: str | None, only: DeadLetterFilter) -> Page[Run]:
        """One page, newest fire time first; one that has just come or gone may lag behind."""
        return self._runs.dead_letters(owner, limit, cursor, only)

    def redrive(self, owner: str, run_id: str) -> Run:
        """The run that runs a dead letter again, now; a repetition answers the same one.

        Raises JobGoneError for one of a deleted job.
        """
        dead = self._get(owner, run_id)
        job = self._jobs.find(owner, dead.key.job_id)
        due_at = self._clock.now().replace(microsecond=0)
        made = self._redriver.redrive(dead, job, due_at)
        match made:
            case Run():
                return made
            case Refusal.JOB_GONE:
                raise JobGoneError(run_id, dead.key.job_id)
            case Refusal.EXPIRED:
                raise MissingError("run", dead.key.redriven.run_id)
        raise NotADeadLetterError(run_id, _why(dead, made))

    def discard(self, owner: str, run_id: str) -> Run:
        """The dead letter, off the list; a repetition changes nothing."""
        dead = self._get(owner, run_id)
        discarded = self._redriver.discard(dead)
        if isinstance(discarded, Refusal):
            raise NotADeadLetterError(run_id, _why(dead, discarded))
        return discarded

    def _get(self, owner: str, run_id: str) -> Run:
        key = run_key_of(owner, run_id)
        run = None if key is None else self._runs.get(key)
        if run is None:
            raise MissingError("run", run_id)
        return run


def _why(run: Run, refusal: Refusal) -> str:
    match refusal:
        case Refusal.NOT_DEAD:
            return f"it is {run.status.value}, not a dead letter"
        case Refusal.REDRIVEN:
            return f"it was redriven, as run {run.key.redriven.run_id}"
    return refusal.value
