"""An owner's limit of concurrent runs. Only what lasts counts: a run whose call has lasted two
seconds takes a permit, so that short ones cost no write.

So who asks learns of the runs that began two seconds ago, and of what it has read ten seconds ago:
what comes anew within these twelve seconds may be over the limit. Runs that have waited take their
permit before their call, and are never over it.
"""

from datetime import datetime, timedelta

from carillon.domain.admission.concurrency import places_taken
from carillon.domain.admission.state import Gate
from carillon.domain.admission.waiting import wait_for_share
from carillon.domain.decisions import Wait
from carillon.domain.message import Message

SHORT_SECONDS = 2
"""A call that ends within this takes no permit."""
KNOWN_FOR = timedelta(seconds=10)
"""So long what was read of an owner's permits is good enough."""


def are_used_up(gate: Gate | None, limit: int, now: datetime) -> bool:
    """Whether the owner's runs hold `limit` permits; those whose lease has ended hold none."""
    return gate is not None and places_taken(gate, now) >= limit


def wait_for_permit(message: Message, limit: int, now: datetime, fraction: float) -> Wait:
    """Look again at a run of an owner whose permits are used up."""
    reason = f"{limit} runs of its owner last longer than {SHORT_SECONDS} s"
    return wait_for_share(message, now, reason, fraction)
