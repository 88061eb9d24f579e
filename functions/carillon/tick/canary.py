"""The canary is indexed by ticks: so it is there from the first one on, and again after any
loss."""

from carillon.clock import Clock, Entropy
from carillon.domain.canary import CANARY_JOB_ID, CANARY_OWNER, canary_to_index
from carillon.services.indexer import Indexer
from carillon.stores.ports import JobStore


class CanaryKeeper:
    """Checks once in the life of a process, which is a few hours at most, that the canary is on the
    wheel."""

    def __init__(
        self, jobs: JobStore, indexer: Indexer, clock: Clock, entropy: Entropy, segments: int
    ) -> None:
        self._jobs = jobs
        self._indexer = indexer
        self._clock = clock
        self._entropy = entropy
        self._segments = segments
        self._is_kept = False

    def keep(self) -> bool:
        """True if it had to be put there; raises StoreUnavailableError or QueueUnavailableError,
        and checks again at the next call then."""
        if self._is_kept:
            return False
        now = self._clock.now()
        stored = self._jobs.get(CANARY_OWNER, CANARY_JOB_ID)
        id_at = now if stored is None else stored.generation.next_id_at(now)
        generation_id = self._entropy.new_id(id_at)
        job = canary_to_index(stored, self._segments, generation_id, now)
        revision = None if stored is None else stored.revision
        # If the commit is lost, the entries are orphaned: another worker's won it.
        indexed = job is not None and self._indexer.index_job(job, revision)
        self._is_kept = True
        return indexed
