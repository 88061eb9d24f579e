"""The run that waits for the end of another (`overlap`): the message that wakes it."""

from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKind
from carillon.schedules import Delay


def turn_message(run: Run, job: Job) -> Message:
    """The message for the first attempt of a run that waits in its row: its turn has come.

    It comes besides the one that looks from time to time, and is as current: the other meets the
    run begun, or waiting anew.
    """
    is_occurrence = run.key.kind is RunKind.SCHEDULED and run.key.redrive == 0
    return Message(
        key=run.key,
        filing_id=run.filing_id,
        segment=job.segment,
        lane=job.lane,
        due_at=run.effective_at or run.key.fire_at,
        after_finish=is_occurrence and isinstance(job.schedule, Delay),
        waits=run.waits,
    )
