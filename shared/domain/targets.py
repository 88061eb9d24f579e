"""What a run calls. A specification only; the calling is the executor's."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator


class TaskTarget(BaseModel):
    """A Python function registered with `@task` in one of the deployment's task modules."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    type: Literal["task"] = "task"
    name: str = Field(min_length=1, max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")


class WebhookTarget(BaseModel):
    """An HTTPS endpoint that gets the payload by POST, signed (Standard Webhooks)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    type: Literal["webhook"] = "webhook"
    url: str = Field(min_length=8, max_length=2048)

    @field_validator("url")
    @classmethod
    def _absolute_http(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise ValueError("must be an absolute https URL, such as https://example.com/hook")
        if parts.username is not None or parts.password is not None:
            raise ValueError("must not carry a user name or password")
        if parts.fragment:
            raise ValueError("must not carry a fragment")
        parts.port  # noqa: B018 - raises ValueError for a port that is no number below 65536
        return url


Target = Annotated[TaskTarget | WebhookTarget, Field(discriminator="type")]

target_adapter: TypeAdapter[TaskTarget | WebhookTarget] = TypeAdapter(Target)
"""Reads and writes a target's JSON form; raises pydantic.ValidationError."""
