"""The writes of a job: its owner's quotas, its links, its entries, its row."""

from carillon.api.jobs.changes import Put, PutAction
from carillon.api.jobs.links import Links
from carillon.domain.quotas import NOTHING
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.stores.ports import JobStore


class Commits:
    """Every job that is made or changed is written here; deletions and pauses are rows alone."""

    def __init__(self, jobs: JobStore, indexer: Indexer, links: Links, quotas: JobQuotas) -> None:
        self._jobs = jobs
        self._indexer = indexer
        self._links = links
        self._quotas = quotas

    def commit(self, put: Put) -> bool:
        """Write the job over the row that it replaces; False if that was changed meanwhile.

        What it adds to the owner's load is in the row of quotas before; what it takes away, or did
        not add after all, is taken away then. Raises QuotaExceededError. A job that runs after
        another one is linked to that first: raises what `Links.put` raises.
        """
        owner, load = put.job.owner, put.load
        self._quotas.add(owner, load.rise)
        won = self._commit(put)
        self._quotas.remove(owner, NOTHING - load.fall if won else load.rise)
        return won

    def _commit(self, put: Put) -> bool:
        job, before, renamed = put.job, put.before, put.renamed
        if renamed is not None:
            if renamed.action is not PutAction.NONE and not self._commit(renamed):
                return False
            if renamed.before is not None:
                self._indexer.remove_ended_entries(renamed.before, renamed.job)
        self._links.put(job, before)
        revision = None if before is None else before.revision
        if put.reindexes:
            won = self._indexer.index_job(job, revision)
        elif before is not None and before.pause == job.pause:
            won = self._jobs.replace(job, before.revision)
        else:  # under another name
            won = self._indexer.commit_paused(job, revision)
        if won and put.reindexes and before is not None:
            self._indexer.remove_ended_entries(before, job)
        if won:
            self._links.tidy_up(job, before)
        return won
