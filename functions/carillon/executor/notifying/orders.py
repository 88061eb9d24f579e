"""Sends what the window of a notification has decided: messages, and the orders of its ends."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from carillon.domain.notifying.notice import first_notice
from carillon.domain.notifying.window import Window
from carillon.domain.run import RunKey
from carillon.services.notices import Notices
from carillon.stores.ports import LaneQueue


@dataclass(frozen=True, slots=True)
class WindowOrders:
    """Sends messages and orders of ends for windows; a repetition sends the same.

    `settle` after the end of a window everything that happened until then is on record. `link` is
    the console's address, "" if there is none. Methods raise StoreUnavailableError and
    QueueUnavailableError.
    """

    notices: Notices
    queue: LaneQueue
    settle: timedelta
    link: str

    def all(self, window: Window, now: datetime) -> None:
        """Send the first message and the order of the window's end; that it was done is yet to be
        put. Who changes the window meanwhile sends, too."""
        if window.is_first:  # later messages are sent by the steps that have decided them
            key = RunKey.from_run_id(window.owner, window.last_delivery)
            notice = first_notice(window.name, window.first, window.until, self.link)
            self.notices.record(key, notice)
            self.notices.send(key)
        self.end(window, now)

    def end(self, window: Window, now: datetime) -> None:
        """Order the end of a window, as far ahead as a queue can: the rest is a chain of
        messages."""
        message = window.end_message(self.settle)
        self.queue.send([message], [message.delay_seconds(now)])
