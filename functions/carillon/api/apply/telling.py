"""Log lines about what an apply wrote."""

from carillon.api.apply.plan import Item, ItemAction
from carillon.api.apply.service import Tell
from carillon.api.calendars.service import CalendarPut
from carillon.domain.spec.owners import Author
from carillon.telemetry import Action, Telemetry

_ACTIONS = {
    ItemAction.CREATE: Action.JOB_CREATED,
    ItemAction.REVIVE: Action.JOB_CREATED,
    ItemAction.RENAME: Action.JOB_CREATED,
    ItemAction.CHANGE: Action.JOB_CHANGED,
    ItemAction.DELETE: Action.JOB_DELETED,
}


def teller(telemetry: Telemetry, author: Author) -> Tell:
    """Records each item that was written by the author."""

    def tell(item: Item) -> None:
        if isinstance(item.put, CalendarPut):
            calendar = item.put.calendar
            telemetry.record(
                Action.CALENDAR_PUT,
                by=author,
                owner=calendar.owner,
                calendar=calendar.name,
                revision=calendar.revision,
            )
        elif item.job is not None and item.action in _ACTIONS:
            job = item.job
            telemetry.record(
                _ACTIONS[item.action],
                by=author,
                owner=job.owner,
                job_id=job.job_id,
                revision=job.revision,
            )

    return tell
