"""The notifications of a seed: who is to be told of what, by channels that may be dead."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from carillon.domain.notifying.notification import (
    OCCURRING,
    Notification,
    Told,
    channel_text,
    notification_id,
)
from carillon.domain.targets import WebhookTarget
from carillon.simulation.faults import Draws
from tests.simulation.worlds.scenario_parts import JobPlan

_CHANNEL = channel_text(WebhookTarget(url="https://example.com/told"))
_ALL = (*sorted(OCCURRING), Told.RUN_RECOVERED)
_CHOICES = (_ALL, _ALL, (Told.RUN_DEAD,), (Told.RUN_DEAD, Told.RUN_RECOVERED), (Told.RUN_MISSED,))


@dataclass(frozen=True, slots=True)
class NotificationPlan:
    """A notification of an owner, about the jobs that `jobs` names; a share `failures` of the calls
    of its channel fails, each takes up to `seconds`."""

    owner: str
    name: str
    on: tuple[Told, ...] = _ALL
    jobs: str = ""
    at_most_every: int = 60
    seconds: float = 0.05
    failures: float = 0.0

    @property
    def job_id(self) -> str:
        """The id that its deliveries have."""
        return notification_id(self.owner, self.name)

    def row(self, created_at: datetime) -> Notification:
        return Notification(
            owner=self.owner,
            name=self.name,
            revision=1,
            on=self.on,
            to=_CHANNEL,
            created_at=created_at,
            updated_at=created_at,
            jobs=self.jobs,
            at_most_every=self.at_most_every,
        )


def notifications_of(seed: int, jobs: Sequence[JobPlan]) -> tuple[NotificationPlan, ...]:
    """In two fifths of the seeds one or two for each owner."""
    if Draws(seed, "notifications").fraction() >= 0.4:
        return ()
    owners = sorted({job.owner for job in jobs})
    return tuple(plan for owner in owners for plan in _of(Draws(seed, f"told {owner}"), owner))


def _of(draws: Draws, owner: str) -> Iterator[NotificationPlan]:
    for number in range(draws.choice((1, 1, 2))):
        yield NotificationPlan(
            owner,
            f"n{number}",
            draws.choice(_CHOICES),
            draws.choice(("", "", "", "j*", "j0")),
            draws.choice((60, 60, 120, 300)),
            draws.choice((0.05, 0.05, 2.0, 12.0)),
            draws.choice((0.0, 0.0, 0.3, 1.0)),
        )
