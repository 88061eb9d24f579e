"""EventBridge buses: the payload is the event's detail, the fire time its time.

A detail has to be an object: any other payload becomes `{"payload": …}`. The run's id is the
event's one resource, since an event has no other place for it; retries repeat it.
"""

from typing import Any

from carillon.clock import Clock
from carillon.domain.targets import EventBridgeTarget
from carillon.executor.targets.aws_client import AwsCaller, coded
from carillon.executor.targets.call import Call, Outcome, Success
from carillon.settings import Settings


def create_caller(settings: Settings, clock: Clock) -> AwsCaller:
    return AwsCaller("events", send)


def send(client: Any, target: EventBridgeTarget, call: Call) -> Outcome:
    entry = {
        "EventBusName": target.bus_arn,
        "Source": target.source,
        "DetailType": target.detail_type,
        "Detail": detail(call.payload),
        "Time": call.fire_at,
        "Resources": [call.run_id],
    }
    (told,) = client.put_events(Entries=[entry])["Entries"]
    if told.get("ErrorCode"):
        return coded(str(told["ErrorCode"]), str(told.get("ErrorMessage", "")))
    return Success(f"event {told['EventId']}")


def detail(payload: str) -> str:
    """The payload, or an object that holds it; both are compact JSON text."""
    return payload if payload.startswith("{") else f'{{"payload":{payload}}}'
