"""Messages of notifications on their way: put on record, sent to a lane, read by the delivery."""

import json
from datetime import timedelta

from carillon.clock import Clock
from carillon.domain.idempotency import IdempotencyRecord, record_key
from carillon.domain.notifying.notice import Notice, notice_text
from carillon.domain.notifying.notification import delivery_message
from carillon.domain.run import RunKey
from carillon.stores.ports import LaneQueue, VersionedRows


class Notices:
    """Used by api and executor; raises StoreUnavailableError and QueueUnavailableError."""

    def __init__(
        self,
        records: VersionedRows[IdempotencyRecord],
        queue: LaneQueue,
        clock: Clock,
        run_lifetime: timedelta,
    ) -> None:
        self._records = records
        self._queue = queue
        self._clock = clock
        self._run_lifetime = run_lifetime

    def get(self, key: RunKey) -> Notice | None:
        """The message that a delivery delivers; its redrives deliver the same."""
        record = self._records.get(key.owner, _record_key(key))
        if record is None or record.payload is None:
            return None
        notice: Notice = json.loads(record.payload)
        return notice

    def record(self, key: RunKey, notice: Notice) -> bool:
        """Put the message on record; False if there is one already."""
        now = self._clock.now()
        own = IdempotencyRecord(
            owner=key.owner,
            key=_record_key(key),
            answer=key.run_id,
            expires_at=now + 2 * self._run_lifetime,  # a redrive may come late
            payload=notice_text(notice),
        )
        return self._records.put(own, None)

    def send(self, key: RunKey) -> None:
        """Order the delivery of what is on record; a repetition meets the same run."""
        self._queue.send([delivery_message(key, self._clock.now())], [0])


def _record_key(key: RunKey) -> str:
    opened_at = str(int(key.fire_at.timestamp()))
    return record_key("notice", key.job_id, opened_at, key.request_id)
