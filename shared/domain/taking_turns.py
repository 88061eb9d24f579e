"""The run that waits for the end of another (`overlap: queue_one`): the message that wakes it."""

from shared.domain.job import Job
from shared.domain.message import Message
from shared.domain.run import Run
from shared.recurrence import Delay


def turn_message(waiting: Run, job: Job) -> Message:
    """The message for the first attempt of a run that waits in its row: its turn has come.

    It comes besides the one that looks from time to time, which then meets the run begun. It
    counts as one that has waited, so that the executor reads the row before it claims.
    """
    return Message(
        key=waiting.key,
        filing_id=waiting.filing_id,
        segment=job.segment,
        lane=job.lane,
        due_at=waiting.effective_at or waiting.key.fire_at,
        after_finish=isinstance(job.schedule, Delay),
        waits=1,
    )
