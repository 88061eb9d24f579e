"""The paths of the API, from ids and names that callers give."""

import re
from datetime import datetime
from urllib.parse import quote

from carillon.errors import InvalidFieldError

_JOB_ID = re.compile(r"[0-9a-v]{26}", re.ASCII)
_HALVES = re.compile("[\ud800-\udfff]")
"""Of surrogate pairs: how Python hands on a byte of a command's argument that is no text."""


def named_job_path(name: str) -> str:
    """`/jobs/named/{name}`; raises InvalidFieldError for text that cannot be a name."""
    return f"/jobs/named/{_part(name, 'job', 'the name of a job')}"


def job_path(job_id: str, suffix: str = "") -> str:
    """`/jobs/{job_id}` + suffix; raises InvalidFieldError for text that cannot be a job id."""
    return f"/jobs/{_part(job_id, 'job_id', 'a job id')}{suffix}"


def calendar_path(name: str) -> str:
    """`/calendars/{name}`; raises InvalidFieldError for text that cannot be a name."""
    return f"/calendars/{_part(name, 'name', 'the name of a calendar')}"


def notification_path(name: str, suffix: str = "") -> str:
    """`/notifications/{name}` + suffix; raises InvalidFieldError for what cannot be a name."""
    return f"/notifications/{_part(name, 'name', 'the name of a notification')}{suffix}"


def quota_path(owner: str | None) -> str:
    """`/quota`, one's own, or that of an owner, as `team/billing` or `user/{sub}`; raises
    InvalidFieldError for text that cannot be an owner."""
    if owner is None:
        return "/quota"
    kind, _, name = owner.partition("/")
    if kind not in ("team", "user"):
        message = f"{owner!r} is not an owner such as team/billing, or user/ and a subject"
        raise InvalidFieldError("owner", message)
    return f"/owners/{kind}/{_part(name, 'owner', 'an owner such as team/billing')}/quota"


def run_path(run_id: str, suffix: str = "") -> str:
    """`/jobs/{job_id}/runs/{run_id}` + suffix: a run's id begins with its job's.

    Raises InvalidFieldError for text that cannot be a run id.
    """
    job_id, underscore, _ = run_id.partition("_")
    if not underscore:
        message = f"{run_id!r} is not a run id such as `runs` shows"
        raise InvalidFieldError("run_id", message)
    return job_path(job_id, f"/runs/{_part(run_id, 'run_id', 'a run id')}{suffix}")


def dead_letter_path(run_id: str, suffix: str = "") -> str:
    """`/dead-letters/{run_id}` + suffix; raises InvalidFieldError for what cannot be a run id."""
    return f"/dead-letters/{_part(run_id, 'run_id', 'a run id')}{suffix}"


def operation_path(operation_id: str, suffix: str = "") -> str:
    """`/operations/{operation_id}` + suffix; raises InvalidFieldError for what cannot be an id."""
    return f"/operations/{_part(operation_id, 'operation_id', 'an operation id')}{suffix}"


def split_job(job: str) -> tuple[str | None, str]:
    """The id that a text names a job by, or None and the job's name.

    No name has the form of an id; `id:` and `name:` before it settle what is meant otherwise.
    """
    kind, colon, rest = job.partition(":")
    if _JOB_ID.fullmatch(job):
        return job, ""
    if colon and kind == "id":
        return rest, ""
    return None, rest if colon and kind == "name" else job


def instant(value: str | datetime) -> str:
    """An instant as the API reads it; raises InvalidFieldError for a time without a zone."""
    if isinstance(value, str):
        return value
    if value.utcoffset() is None:
        raise InvalidFieldError("time", f"{value!r} has no time zone: give it one, as UTC")
    return value.isoformat()


def _part(text: str, field: str, what: str) -> str:
    if text.strip(".") == "" or _HALVES.search(text):
        raise InvalidFieldError(field, f"{text!r} is not {what}")
    return quote(text, safe="")
