"""Notifications in a World: who wants to hear what, and what was said."""

import json
from typing import Any

from carillon.domain.notifying.notification import (
    AnyChannel,
    Notification,
    Told,
    channel_text,
)
from carillon.domain.targets import WebhookTarget
from tests.support.world import OWNER, World

HOOK = WebhookTarget(url="https://example.com/hook")


def notify(world: World, name: str = "ops", to: AnyChannel = HOOK, **members: Any) -> Notification:
    """A notification of everything, unless said otherwise."""
    now = world.clock.now()
    members = {"on": tuple(Told), "created_at": now, "updated_at": now, **members}
    made = Notification(OWNER, name, 1, to=channel_text(to), **members)
    assert world.notifications.put(made, None)
    return made


def is_delivery(run_id: str) -> bool:
    return "_notice-" in run_id


def said(world: World, name: str = "ops") -> list[dict[str, Any]]:
    """The bodies that were delivered for a notification, oldest first."""
    calls = [call for call in world.targets.calls if is_delivery(call.run_id)]
    return [json.loads(call.payload) for call in calls if call.job_name == f"notification {name}"]
