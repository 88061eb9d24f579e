"""A client of the HTTP API, and `verify` for who receives webhooks.

    from carillon.client import Client, Webhook

    with Client.from_env() as client:
        client.jobs.put("nightly", schedule="0 3 * * *", target=Webhook("https://example.com/x"))

`AsyncClient` has the same names. Nothing is imported but the standard library, and httpx2 when a
client is made.
"""

from carillon.client.client import AsyncClient, Client
from carillon.client.completion import AsyncCompletion, Completion
from carillon.client.errors import (
    ApiError,
    Conflict,
    InvalidSignature,
    Managed,
    NotAllowed,
    NotFound,
    QuotaExceeded,
    Refused,
    Unavailable,
)
from carillon.client.sign_in import Machine
from carillon.client.targets import (
    Batch,
    Ecs,
    EventBridge,
    Lambda,
    Sns,
    Sqs,
    StepFunctions,
    Task,
    Webhook,
)
from carillon.client.webhooks import Event, verify

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncCompletion",
    "Batch",
    "Client",
    "Completion",
    "Conflict",
    "Ecs",
    "Event",
    "EventBridge",
    "InvalidSignature",
    "Lambda",
    "Machine",
    "Managed",
    "NotAllowed",
    "NotFound",
    "QuotaExceeded",
    "Refused",
    "Sns",
    "Sqs",
    "StepFunctions",
    "Task",
    "Unavailable",
    "Webhook",
    "verify",
]
