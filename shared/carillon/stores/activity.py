"""The port of the activity feed: what batches have recorded, by owner and time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from carillon.domain.activity.results import Result


@dataclass(frozen=True, slots=True)
class Record:
    """One owner's results of one batch. `batch_id` is unique and names the record together with
    `recorded_at`, an instant in whole seconds; `expires_at` is too."""

    owner: str
    recorded_at: datetime
    batch_id: str
    results: tuple[Result, ...]
    expires_at: datetime

    @property
    def position(self) -> str:
        """Its place within its day: records are ordered by it."""
        return f"{self.recorded_at:%H:%M:%S}#{self.batch_id}"


class ActivityStore(Protocol):
    """Records by owner and day, in UTC; raises StoreUnavailableError as every port (ports.py)."""

    def put(self, record: Record, most_units: int | None = None) -> bool:
        """Store the record, unless that takes more than `most_units` write units; True if it is
        stored. One put twice is the same record. Where rows cost nothing none is too large."""
        ...

    def read(
        self, owner: str, day: datetime, before: str = "", since: str = ""
    ) -> Iterator[Record]:
        """The records of the day that begins at `day`, newest first, fetched as they are asked for.

        Their positions lie before `before` and are not less than `since`, where these are given.
        Eventually consistent; results that cannot be read are left out with their record.
        """
        ...
