"""No operation, asked for what another owner has, tells of it or touches it: teams and persons.

Each request names another owner's ids, names, keys or cursors, and is answered as one for what
nobody has (invariant I5)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import quote
from zlib import crc32

import pytest

from carillon.domain.execution import completing
from tests.unit.api.conftest import BODY, new_world
from tests.unit.api.gateway import Answer, Client, Json
from tests.unit.api.marked import SPAN, Marked, MarkedWorld, nothing

MARKED = MarkedWorld(new_world())
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in MARKED.api.describe()["paths"].items()
    for method, operation in methods.items()
}


@dataclass(frozen=True)
class Asked:
    """What a request has besides method and path: those are its operation's."""

    path: Json
    body: Any = None
    query: Json | None = None
    headers: Json | None = None


def asked_for(m: Marked) -> dict[str, list[Asked]]:
    """For each operation requests that name what `m` has."""
    job, run, by = {"job_id": m.job_id}, {"run_id": m.run_id}, {"operation_id": m.operation_id}
    named, calendar, note = {"name": m.job_name}, {"name": m.calendar}, {"name": m.notification}
    owner = dict(zip(("kind", "name"), m.owner.split("/"), strict=True))
    dead, waiting = {"run_id": m.dead_id}, {"run_id": m.open_id}
    any_revision, same_key = {"If-Match": "*"}, {"Idempotency-Key": m.key}
    task = {"type": "task", "name": "echo"}
    hook = {"type": "slack", "url": {"secret": "hook"}}
    spec, tag = {"schedule": "every 1h", "target": task}, {"tag": f"{m.mark}:{m.mark}"}
    calendars = {"calendar": {"name": m.calendar}}
    bearers: list[Json] = [
        {"Authorization": f"Bearer {token}"}
        for owner in (m.owner, "team/other")
        for token in (completing.token_of(owner, "guess"), "x")
    ]
    reports = [Asked(waiting, None, None, bearer) for bearer in bearers]
    patch, mine = {"description": "stolen"}, f"mine {crc32(m.mark.encode())}"
    return {
        "get_named_job": [Asked(named)],
        "put_job": [Asked(named, spec), Asked({"name": mine}, spec | calendars)],
        "delete_named_job": [Asked(named)],
        "get_job": [Asked(job)],
        "delete_job": [Asked(job), Asked(job, None, {"force": "true"})],
        "change_job": [Asked(job, patch, None, any_revision), Asked(job, patch, {"force": "true"})],
        "pause_job": [Asked(job), Asked(job, {"until": "2026-03-02T00:00:00Z"})],
        "resume_job": [Asked(job)],
        "get_calendar": [Asked(calendar)],
        "put_calendar": [Asked(calendar, {"weekdays": ["mon"]}, None, any_revision)],
        "delete_calendar": [Asked(calendar)],
        "run_job": [Asked(job), Asked(job, {"note": "n"}, None, same_key)],
        "list_runs": [Asked(job)],
        "get_run": [Asked(job | run), Asked(job | dead), Asked({"job_id": "0" * 26} | run)],
        "cancel_run": [Asked(job | waiting), Asked({"job_id": "0" * 26} | waiting)],
        "list_logs": [Asked(run)],
        "get_run_of_any_job": [Asked(run), Asked(dead), Asked(waiting)],
        "complete_run": reports,
        "fail_run": [Asked(each.path, {"message": "m"}, None, each.headers) for each in reports],
        "send_heartbeat": reports,
        "get_operation": [Asked(by)],
        "count_outcomes": [Asked(by)],
        "cancel_operation": [Asked(by)],
        "redrive_dead_letter": [Asked(dead)],
        "discard_dead_letter": [Asked(dead)],
        "list_missed": [Asked(job)],
        "backfill_job": [Asked(job, SPAN), Asked(job, SPAN, None, same_key)],
        "get_notification": [Asked(note)],
        "put_notification": [Asked(note, {"on": ["run.dead"], "to": hook}, None, any_revision)],
        "delete_notification": [Asked(note)],
        "test_notification": [Asked(note)],
        "list_upcoming_of_job": [Asked(job)],
        "list_changes_of_a_job": [Asked(job)],
        "list_jobs": [
            Asked({}, None, query)
            for query in (
                {"q": m.job_name},
                {"q": m.job_id},
                tag,
                {"parent": f"{m.mark}-parent"},
                {},
            )
        ],
        "create_job": [
            Asked({}, BODY | {"name": mine} | calendars, None, same_key),
            Asked({}, {"name": mine, "target": task, "after": m.job_name}),
            Asked({}, {"name": mine, "target": task, "after": m.job_id}),
        ],
        "delete_jobs": [Asked({}, None, tag), Asked({}, None, {"parent": f"{m.mark}-parent"})],
        "create_jobs": [Asked({}, {"items": [BODY | {"name": mine} | calendars]}, None, same_key)],
        "change_jobs": [
            Asked({}, {"items": [{"job_id": m.job_id, "patch": patch, "force": force}]})
            for force in (False, True)
        ],
        "pause_jobs": [Asked({}, None, tag), Asked({}, None, {"parent": f"{m.mark}-parent"})],
        "resume_jobs": [Asked({}, None, tag)],
        "hand_over_jobs": [
            Asked({}, {"to": "growth", **chosen})
            for chosen in ({"job_id": m.job_id}, {"parent": f"{m.mark}-parent"}, {"all": True})
        ],
        "list_calendars": [Asked({})],
        "apply_manifest": [
            Asked({}, {"manifest": "m", "jobs": {mine: spec | calendars}}),
            Asked({}, {"manifest": "m", "jobs": {mine: spec | {"was": m.job_name}}}),
            Asked({}, {"manifest": "m", "jobs": {mine: {"target": task, "after": m.job_name}}}),
            Asked({}, {"manifest": "m", "keep": []}),
        ],
        "list_activity": [Asked({}, None, {"job": m.job_id}), Asked({}, None, tag), Asked({})],
        "sum_up": [Asked({}), Asked({}, None, {"group": "job"})],
        "list_operations": [Asked({})],
        "list_dead_letters": [Asked({}, None, {"job_id": m.job_id}), Asked({})],
        "redrive_dead_letters": [Asked({}, {"job_id": m.job_id}, None, same_key)],
        "discard_dead_letters": [Asked({}, {"job_id": m.job_id}, None, same_key)],
        "list_notifications": [Asked({})],
        "preview_schedule": [Asked({}, {"schedule": "every 1h"} | calendars)],
        "list_upcoming": [Asked({}, None, {"count": "100"})],
        "get_forecast": [Asked({})],
        "list_forecast_jobs": [Asked({}, None, {"minute": "2026-03-01T12:05:00Z"})],
        "get_quota": [Asked({})],
        "get_quota_of_an_owner": [Asked(owner)],
        "put_quota_of_an_owner": [Asked(owner, {"jobs": 1})],
        "get_status": [Asked({})],
        "get_deployment": [Asked({})],
        "tell_how_to_sign_in": [Asked({})],
        "get_description": [Asked({})],
        "list_changes": [
            Asked({}, None, query)
            for query in (
                {"job": m.job_id},
                {"by": f"{m.mark}-person"},
                {"calendar": m.calendar},
                {"notification": m.notification},
                {},
            )
        ],
    }


FOR_OPERATORS = [
    name for name, (*_, each) in OPERATIONS.items() if each.get("x-carillon-role") == "operator"
]
VICTIMS = [MARKED.of("team/billing"), MARKED.of("user/qqann-sub")]
ASKED = {each.owner: asked_for(each) for each in VICTIMS}
STRANGERS: dict[str, tuple[str, str, str]] = {
    "an admin of another team": ("ed", "[{team}:admin]", "{team}"),
    "a member who acts for no team": ("meg-{team}", "[billing:admin {team}:admin]", ""),
    "a member who acts for another team": ("meg", "[{team}:editor {team}:admin]", "{team}"),
    "an operator": ("olga", "[operators {team}:admin]", "{team}"),
    "a person whose subject looks like the team's": ("billing#{team}", "", ""),
}
"""Each may do everything for an owner of its own, which has nothing: subject, groups, team."""


def stranger(who: str, team: str) -> tuple[Client, str]:
    """The client, and the owner that it acts for, which is of this team only."""
    subject, groups, acts_for = (part.format(team=team) for part in STRANGERS[who])
    client = Client(MARKED.api, f"user/{subject}", groups or None, team=acts_for)
    return client, f"team/{acts_for}" if acts_for else f"user/{subject}"


def send(client: Client, operation: str, asked: Asked) -> Answer:
    method, template, _ = OPERATIONS[operation]
    path = re.sub(r"\{(\w+)\}", lambda found: quote(asked.path[found[1]]), template)
    body = () if asked.body is None else (asked.body,)
    return client.send(method, path, *body, query=asked.query, headers=asked.headers)


def without_names(text: str, m: Marked) -> str:
    """The text with placeholders for what `m` has, and for ids that are made anew."""
    members = [each.name for each in fields(m) if each.name != "texts"]
    for member in sorted(members, key=lambda each: -len(getattr(m, each))):
        for spelling in (getattr(m, member), quote(getattr(m, member))):
            text = text.replace(spelling, f"<{member}>")
    text = re.sub(r"mine(?: |%20)\d+", "<mine>", text)
    return re.sub(r"\b[0-9a-z]{26}\b", "<id>", text)


def test_each_operation_is_asked() -> None:
    assert asked_for(nothing("x")).keys() == OPERATIONS.keys()


@pytest.mark.parametrize("who", STRANGERS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_others_have_cannot_be_told_from_nothing(operation: str, who: str) -> None:
    client, owner = stranger(who, operation.replace("_", "-"))
    if who == "an operator" and operation in FOR_OPERATORS:
        return  # they are to know of others
    for victim in VICTIMS:
        kept = MARKED.rows_of(victim.owner)
        assert len(kept) > 30
        none = nothing(f"un{victim.mark}")
        pairs = zip(ASKED[victim.owner][operation], asked_for(none)[operation], strict=True)
        for about_theirs, about_nothing in pairs:
            answer = send(client, operation, about_theirs)
            other = send(client, operation, about_nothing)
            assert answer.status == other.status, (about_theirs, answer.text, other.text)
            assert answer.status < 500
            if answer.status >= 400:
                told = without_names(answer.text, victim), without_names(other.text, none)
                assert told[0] == told[1]
            path = re.sub(r"\{\w+\}", "{}", OPERATIONS[operation][1])
            sent = f"{path} {'/'.join(about_theirs.path.values())} {about_theirs}"
            assert not MARKED.leaked(owner, sent, answer), answer.text
        assert MARKED.rows_of(victim.owner) == kept


@pytest.mark.parametrize(
    "operation", [name for name, (_, path, _) in OPERATIONS.items() if "_id}" in path]
)
def test_an_id_of_another_owner_s_is_not_found(operation: str) -> None:
    client, _ = stranger("an operator", "third")
    for victim in VICTIMS:
        for asked in ASKED[victim.owner][operation]:
            if "If-Match" not in (asked.headers or {}) and operation == "change_job":
                continue  # refused before, since it needs one
            assert send(client, operation, asked).status == 404, asked


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_own_member_is_answered(operation: str) -> None:
    """The same requests by a member: what is compared above is there, and seen by who may."""
    # For each owner anew: the requests of members change what the others were refused.
    own = MarkedWorld(new_world())
    team = own.of("team/billing")
    client = Client(own.api, "user/ed", "[billing:admin]", team="billing")
    answers = [send(client, operation, asked) for asked in asked_for(team)[operation]]
    is_about_it = any(each.path or each.query for each in asked_for(team)[operation])
    others = ("complete_run", "fail_run", "send_heartbeat", *FOR_OPERATORS)
    if is_about_it and operation not in others:
        done = min(each.status for each in answers)
        in_use = operation == "delete_calendar"  # a job of the same owner follows it
        assert done == 409 if in_use else done < 300, [each.text for each in answers]


def cursors_of(m: Marked) -> Iterator[tuple[str, str]]:
    """Operation and cursor of every list that goes on behind its first item."""
    client = Client(MARKED.api, "user/ed", "[billing:admin]", team="billing")
    for operation, (method, _, described) in OPERATIONS.items():
        names = {each["name"] for each in described.get("parameters", ())}
        if method != "GET" or not {"limit", "cursor"} <= names:
            continue
        for asked in asked_for(m)[operation]:
            query = {**(asked.query or {}), "limit": "1"}
            answer = send(client, operation, Asked(asked.path, None, query))
            assert answer.status == 200, answer.text
            if answer.json["next_cursor"]:
                yield operation, answer.json["next_cursor"]


def test_no_cursor_leads_into_another_owner_s_list() -> None:
    found = list(cursors_of(MARKED.of("team/billing")))
    listing = {name for name, _ in found}
    assert listing == {
        *("list_jobs", "list_runs", "list_calendars", "list_notifications", "list_operations"),
        *("list_activity", "list_dead_letters", "list_changes", "list_changes_of_a_job"),
    }
    client, owner = stranger("an admin of another team", "third")
    paged = [
        name
        for name, (_, _, described) in OPERATIONS.items()
        if any(each["name"] == "cursor" for each in described.get("parameters", ()))
    ]
    for operation in paged:
        for _, cursor in found:
            query = {"cursor": cursor}
            if operation in ("delete_jobs", "pause_jobs", "resume_jobs"):
                query["tag"] = "a:b"
            asked = asked_for(nothing("x"))[operation][0]
            answer = send(client, operation, Asked(asked.path, asked.body, query))
            assert answer.status == 404 or answer.fields == ["cursor"], (operation, answer.text)
            assert not MARKED.leaked(owner, cursor, answer)
