"""Results of runs, as their jobs want them kept."""

from dataclasses import replace

from carillon.domain.job import Job
from carillon.domain.policies import ResultKept
from carillon.domain.run import Run, kept_text, one_line
from carillon.stores.ports import RunStore


def keeps_whole(job: Job) -> bool:
    return job.spec.result is ResultKept.FULL


def with_result(runs: RunStore, run: Run, job: Job, text: str | None) -> Run:
    """The run with its result, about to be recorded as ended; raises StoreUnavailableError.

    A longer result than its row has is put before, under the claim's own id: whatever crashes or
    loses in between leaves a row that no run names, until it expires.
    """
    if text is None:
        return run
    beginning = one_line(text)
    whole = kept_text(text, whole=True) if keeps_whole(job) else beginning
    if whole == beginning:
        return replace(run, result=beginning)
    runs.put_result(run, whole)
    return replace(run, result=beginning, result_bytes=len(whole.encode()))
