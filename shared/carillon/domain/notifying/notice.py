"""The message of a notification: its content as JSON, and as text for people."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from carillon.clock import utc_text
from carillon.domain.notifying.notification import Told
from carillon.domain.notifying.window import Failing, Noted

MOST_ERRORS = 5
MOST_JOBS = 20
_VERBS = {
    Told.RUN_DEAD: "failed",
    Told.RUN_MISSED: "was missed",
    Told.JOB_PAUSED: "was paused",
    Told.JOB_SLOWED: "is slow",
}
_COUNTED = {
    Told.RUN_DEAD: ("run failed", "runs failed"),
    Told.RUN_MISSED: ("run was missed", "runs were missed"),
    Told.JOB_PAUSED: ("job was paused", "jobs were paused"),
    Told.JOB_SLOWED: ("job is slow", "jobs are slow"),
}

Notice = Mapping[str, Any]
"""JSON: what a webhook gets as its body."""


def first_notice(name: str, event: Noted, until: datetime, link: str) -> Notice:
    """The message that opens a window, which is quiet until then."""
    error = {"kind": event.error_kind, "message": event.error_message} if event.error_kind else None
    told = {
        "type": event.type.value,
        "at": utc_text(event.at),
        "job_id": event.job_id,
        "job_name": event.job_name,
        "run_id": event.run_id or None,
        "error": error,
    }
    summary = f"{subject(event.job_name, event.of_callback)} {_VERBS[event.type]}"
    return {
        **_head("first", name, summary, link),
        "event": told,
        "next_message_after": utc_text(until),
    }


def digest_notice(
    name: str,
    events: Sequence[Noted],
    recovered: Sequence[Failing],
    span: tuple[datetime, datetime],
    link: str,
    *,
    is_complete: bool = True,
) -> Notice | None:
    """The message of a window's step: counts, frequent errors, jobs, and what works again. None if
    there is nothing to tell. Without `is_complete` there was more."""
    if not events and not recovered:
        return None
    counts = Counter(event.type for event in events)
    errors = Counter((x.error_kind, x.error_message) for x in events if x.error_kind)
    jobs = Counter((x.job_id, x.job_name) for x in events)
    parts = [f"{n} {_COUNTED[each][n > 1]}" for each, n in sorted(counts.items())]
    if recovered:
        first = subject(recovered[0].job_name, recovered[0].of_callback)
        names = first if len(recovered) == 1 else f"{len(recovered)} jobs"
        parts.append(f"{names} work{'s' if len(recovered) == 1 else ''} again")
    if not is_complete:
        parts.append("and more")
    return {
        **_head("digest" if events else "recovered", name, ", ".join(parts), link),
        "from": utc_text(span[0]),
        "until": utc_text(span[1]),
        "complete": is_complete,
        "counts": {each.value: n for each, n in sorted(counts.items())},
        "errors": [
            {"kind": kind, "message": message, "count": n}
            for (kind, message), n in errors.most_common(MOST_ERRORS)
        ],
        "jobs": [
            {"job_id": job_id, "job_name": job_name, "count": n}
            for (job_id, job_name), n in jobs.most_common(MOST_JOBS)
        ],
        "more_jobs": max(0, len(jobs) - MOST_JOBS),
        "recovered": list(map(_works_again, recovered)),
    }


def _works_again(failing: Failing) -> dict[str, Any]:
    return {
        "job_id": failing.job_id,
        "job_name": failing.job_name,
        "of_callback": failing.of_callback,
        "failed_at": utc_text(failing.since),
    }


def notice_of_test(name: str) -> Notice:
    """The message of a test; the api, which records it, knows no address of the console."""
    return _head("test", name, "a test: this channel works", "")


def notice_text(notice: Notice) -> str:
    """As JSON, without blanks."""
    return json.dumps(notice, separators=(",", ":"), ensure_ascii=False)


def subject_of(notice: Notice) -> str:
    """One line of ASCII, as topics demand, of at most 100 characters."""
    line = f"Carillon: {notice['summary']}".encode("ascii", "replace").decode()
    return line if len(line) <= 100 else f"{line[:97]}..."


def plain_text(notice: Notice) -> str:
    """The message for people, in lines."""
    lines = [notice["summary"], ""]
    event = notice.get("event")
    if event is not None:
        lines.append(f"at {event['at']}")
        if event["error"] is not None:
            lines.append(f"{event['error']['kind']}: {event['error']['message']}")
        if event["run_id"] is not None:
            lines.append(f"run {event['run_id']}")
    if notice.get("errors"):
        lines += ["Errors:", *(f"  {_error_line(each)}" for each in notice["errors"])]
    if notice.get("jobs"):
        lines += ["Jobs:", *(f"  {each['count']} x {each['job_name']}" for each in notice["jobs"])]
        if notice["more_jobs"]:
            lines.append(f"  and {notice['more_jobs']} more")
    if notice.get("recovered"):
        lines += ["Works again:", *(f"  {each}" for each in recovered_of(notice))]
    if "until" in notice:
        lines.append(f"from {notice['from']} to {notice['until']}")
    if "next_message_after" in notice:
        lines.append(f"next message not before {notice['next_message_after']}")
    if notice["link"]:
        lines.append(notice["link"])
    lines += ["", f"notification {notice['notification']} of Carillon"]
    return "\n".join(lines)


def subject(job_name: str, of_callback: bool) -> str:
    """The job, or its callback: that may fail of a job whose own run was good."""
    return f"a callback of {job_name}" if of_callback else job_name


def recovered_of(notice: Notice) -> list[str]:
    """The names of what works again."""
    return [subject(each["job_name"], each["of_callback"]) for each in notice["recovered"]]


def _error_line(error: Mapping[str, Any]) -> str:
    return f"{error['count']} x {error['kind']}: {error['message']}"


def _head(kind: str, name: str, summary: str, link: str) -> dict[str, Any]:
    return {
        "type": "carillon.notification",
        "kind": kind,
        "notification": name,
        "summary": summary,
        "link": link or None,
    }
