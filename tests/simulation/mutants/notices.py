"""Bugs planted into notifications."""

from dataclasses import replace
from typing import Any

from carillon.domain.notifying import window
from carillon.domain.notifying.notification import Notification
from carillon.domain.notifying.window import Noted, Window
from carillon.executor.notifying import notifier
from carillon.executor.notifying.notifier import Notifier
from tests.simulation.mutants.kit import Code, Mutant, Swap, both, faulty
from tests.simulation.worlds.scenario import Scenario
from tests.simulation.worlds.scenario_notifications import NotificationPlan


def _told(scenario: Scenario) -> Scenario:
    """Every owner is told of everything, about every minute; runs fail now and then."""
    owners = sorted({job.owner for job in scenario.jobs})
    return replace(scenario, notifications=tuple(NotificationPlan(each, "n0") for each in owners))


_FAILING = both(_told, faulty(dies=0.02, target_refuses=0.15))


def _not_again(original: Code) -> Code:
    def _opened(*args: Any) -> Window:
        opened: Window = original(*args)
        return replace(opened, is_ordered=True)

    return _opened


def _as_if_settled(original: Code) -> Code:
    def unread(self: Window, now: Any) -> Any:
        return original(self, now)[0], now.replace(microsecond=0)

    return unread


def _each_at_once(original: Code) -> Code:
    def after_event(
        before: Window | None, event: Noted, notification: Notification, now: Any
    ) -> Any:
        return window._opened(before, event.short, notification, now)

    return after_event


def _sent_before(original: Code) -> Code:
    def _tell(self: Notifier, notification: Notification, event: Noted) -> None:
        now = self._clock.now()
        before = self._window(notification, now)
        after = window.after_event(before, event, notification, now)
        if isinstance(after, Window) and (before is None or after.opened_at != before.opened_at):
            self._orders.all(after, now)
        original(self, notification, event)

    return _tell


NOTICES = (
    Mutant(
        "notice_not_sent_again",
        ("notice",),
        "a window counts as ordered once it is put: nobody sends what its executor died before",
        (Swap(window, "_opened", _not_again),),
        _FAILING,
    ),
    Mutant(
        "digest_reads_to_its_end",
        ("notice",),
        "a step says that all was read up to now: what is recorded in this second comes too late",
        (Swap(Window, "unread", _as_if_settled),),
        _FAILING,
    ),
    Mutant(
        "each_failure_at_once",
        ("notice",),
        "every event opens a window of its own: a message for each",
        (Swap(notifier, "after_event", _each_at_once),),
        _FAILING,
    ),
    Mutant(
        "message_before_its_window",
        ("notice",),
        "the first message goes before the window is put: two executors both send theirs",
        (Swap(Notifier, "_tell", _sent_before),),
        _FAILING,
    ),
)
