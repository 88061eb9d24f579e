"""Filing: putting jobs and messages on the wheel so that nothing falls between filer and tick.

Order replaces transactions (DESIGN 4.2). The entries are put first; then the segment's horizon is
read, and what has already been announced is sent by the filer itself. Either the tick announced
before that read, and the filer sends; or after, and the tick's query sees the entries. Both may
happen: the claim of the run absorbs it.
"""

from collections.abc import Sequence
from datetime import datetime

from shared.clock import Clock
from shared.domain.job import Job
from shared.domain.message import Message
from shared.domain.run import RunKey, RunKind
from shared.domain.segment import Control, first_control
from shared.domain.wheel import Entry, entries_of, minute_end
from shared.errors import StoreUnavailableError
from shared.recurrence import SlotKind
from shared.stores.ports import JobStore, LaneQueue, WheelStore

UNCOMMITTED_DELAY_SECONDS = 5
"""Messages sent before the job row is committed stay hidden at least this long."""


class Filer:
    """Files jobs, chain links and late retries; used by the api, the tick and the executor."""

    def __init__(self, jobs: JobStore, wheel: WheelStore, queue: LaneQueue, clock: Clock) -> None:
        self._jobs = jobs
        self._wheel = wheel
        self._queue = queue
        self._clock = clock

    def file_job(self, job: Job, revision: int | None) -> bool:
        """Put a job with a new filing on the wheel; the job row is the commit.

        1. put the entries; 2. read the horizon and send what is announced, hidden for a while;
        3. commit the row (absent if `revision` is None, else over that revision);
        4. send again, undelayed, what is due before the hidden messages appear.

        False when the commit lost: the entries and messages are noise, told by their filing.
        """
        entries = entries_of(job)
        self._wheel.put_entries(entries)
        horizon_at = minute_end(self.control(job.segment).horizon)
        announced = [
            message_of(job, fire_at)
            for fire_at in job.schedule.between(job.filing.from_at, horizon_at)
        ]
        self._send(announced, at_least=UNCOMMITTED_DELAY_SECONDS)
        if announced and entries[0].slot.kind is SlotKind.DATED:
            # The tick may have passed the first link before it was put: never rely on its visit.
            self._file_next(entries[0], horizon_at)
        if revision is None:
            committed = self._jobs.create(job)
        else:
            committed = self._jobs.replace(job, revision)
        if committed:
            now = self._clock.now()
            self._send([m for m in announced if m.delay_seconds(now) < UNCOMMITTED_DELAY_SECONDS])
        return committed

    def file_entry(self, entry: Entry) -> None:
        """Put a dated entry, and send what it stands for if its minute is announced already."""
        self._wheel.put_entries([entry])
        horizon = self.control(entry.segment).horizon
        if entry.slot.number > horizon:
            return
        if entry.message is not None:
            self._send([entry.message])
            return
        horizon_at = minute_end(horizon)
        self._send([entry.message_at(fire_at) for fire_at in entry.chain(horizon_at)])
        self._file_next(entry, horizon_at)

    def control(self, segment: int) -> Control:
        """The segment's control item, created by whoever meets the segment first."""
        for _ in range(3):
            control = self._wheel.get_control(segment)
            if control is not None:
                return control
            first = first_control(segment, self._clock.now())
            if self._wheel.put_control(first, over=None):
                return first
        raise StoreUnavailableError(f"control item of segment {segment} neither read nor created")

    def _file_next(self, link: Entry, after: datetime) -> None:
        """File the first link of a chain behind `after`, if its schedule has one."""
        following = None if link.schedule is None else link.schedule.next(after)
        if following is not None:
            self.file_entry(link.link_at(following))

    def _send(self, messages: Sequence[Message], at_least: int = 0) -> None:
        now = self._clock.now()
        self._queue.send(messages, [max(at_least, m.delay_seconds(now)) for m in messages])


def message_of(job: Job, fire_at: datetime) -> Message:
    """The message for a job's scheduled occurrence, first attempt."""
    return Message(
        key=RunKey(job.owner, job.job_id, RunKind.SCHEDULED, fire_at),
        filing_id=job.filing.filing_id,
        segment=job.segment,
        lane=job.lane,
        due_at=fire_at,
    )
