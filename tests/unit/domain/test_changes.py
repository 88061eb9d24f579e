"""What a change keeps of two documents, and what two rows of a job say was done."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.domain.changes.change import (
    CHANGED_BYTES,
    MOST_PATHS,
    VALUE_BYTES,
    Action,
    changed_members,
)
from carillon.domain.changes.handing_over import begun, ended, settled, taken_back
from carillon.domain.changes.of_jobs import job_change
from carillon.domain.job import Generation, Job
from carillon.domain.operation import Operation, OperationKind
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import SYSTEM, Author, AuthorKind, Via
from tests.contract.samples import a_job

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ANN = Author(AuthorKind.PERSON, "sub-1", "ann", Via.API)
LATER = NOW + timedelta(hours=1)
GENERATION = Generation("01KAGZ7T2M9GQ4C5V0Y6N8XWRD", NOW)


def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    found = changed_members(before, after)
    return {each.path: (json.loads(each.before), json.loads(each.after)) for each in found}


def test_members_are_named_by_their_paths() -> None:
    before = {"schedule": "every 5m", "tags": {"a": "1"}, "retry": None}
    after = {"schedule": "every 6m", "tags": {"b": "1"}, "retry": {"max": 3}}

    assert changed(before, after) == {
        "schedule": ("every 5m", "every 6m"),
        "tags.a": ("1", None),
        "tags.b": (None, "1"),
        "retry": (None, {"max": 3}),
    }


def test_what_may_be_a_secret_is_a_digest() -> None:
    def webhook(token: str) -> dict[str, Any]:
        return {
            "type": "webhook",
            "url": f"https://example.com/hook?key={token}",
            "headers": {"Authorization": f"Bearer {token}", "X-Key": {"secret": "key"}},
        }

    before = {"payload": {"password": "pass-1"}, "target": webhook("pass-1"), "on_failure": None}
    after = {"payload": ["pass-2"], "target": webhook("pass-2"), "on_failure": webhook("pass-3")}
    found = changed(before, after)

    assert "pass" not in str(found)
    assert found.keys() == {"payload", "target.url", "target.headers.Authorization", "on_failure"}
    old, new = found["target.url"]
    assert old.startswith("https://example.com/hook?sha256:")
    assert old != new
    assert found["on_failure"][1]["headers"]["X-Key"] == {"secret": "key"}


@pytest.mark.parametrize("member", ["environment", "parameters"])
def test_what_a_container_is_given_is_a_digest(member: str) -> None:
    before, after = ({"target": {member: {"TOKEN": f"pass-{number}"}}} for number in (1, 2))
    found = changed(before, after)

    assert "pass" not in str(found)
    assert found.keys() == {f"target.{member}"}


@pytest.mark.parametrize("member", ["secret", "parameter"])
def test_what_only_looks_like_a_reference_is_a_digest(member: str) -> None:
    """A payload, a variable, a parameter of Batch or a header may have the name of one."""
    own = {member: "pass-1"}
    target = {"headers": own, "environment": own, "parameters": own}
    found = changed({}, {"payload": own, "target": target, "on_failure": [target]})

    assert "pass" not in str(found)
    assert found["target"][1]["headers"].keys() == {member}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=60,
)
documents = st.dictionaries(st.text(min_size=1), values, max_size=30)


@given(documents, documents)
def test_no_change_is_large(before: dict[str, Any], after: dict[str, Any]) -> None:
    found = changed_members(before, after)
    texts = [text for each in found for text in (each.before, each.after)]

    assert len(found) <= MOST_PATHS
    assert all(len(text.encode("utf-8", "replace")) <= VALUE_BYTES for text in texts)
    marks = len('"\\u2026"') * len(texts)
    assert sum(len(text.encode("utf-8", "replace")) for text in texts) <= CHANGED_BYTES + marks
    assert all(isinstance(json.loads(text), object) for text in texts)
    assert changed_members(before, before) == ()


def test_a_long_value_is_cut() -> None:
    found = changed({"description": "ü" * 400}, {"description": '"' * 400})
    for value in found["description"]:
        assert value.endswith("…")


def job(**members: Any) -> Job:
    return a_job("user/owner-1", author=ANN, updated_at=NOW, **members)


ACTIVE = job()
PAUSED = ACTIVE.paused(NOW, "3 runs failed in a row")
UNTIL = ACTIVE.paused(NOW, "release", ANN, LATER)


@pytest.mark.parametrize(
    ("before", "after", "action", "by", "note"),
    [
        (None, ACTIVE, Action.CREATE, ANN, ""),
        (ACTIVE.deleted(NOW, LATER, ANN), ACTIVE, Action.CREATE, ANN, ""),
        (ACTIVE, job(name="other", revision=2), Action.CHANGE, ANN, ""),
        (ACTIVE, job(managed_by="manifest/x", revision=2), Action.CHANGE, ANN, ""),
        (UNTIL, replace(UNTIL, applied="x", revision=3), Action.CHANGE, ANN, ""),
        (ACTIVE, PAUSED, Action.PAUSE, SYSTEM, "3 runs failed in a row"),
        (ACTIVE, UNTIL, Action.PAUSE, ANN, "release"),
        (UNTIL, UNTIL.paused(NOW, "", ANN), Action.PAUSE, ANN, "release"),
        (
            UNTIL,
            UNTIL.in_new_generation(GENERATION, LATER),
            Action.RESUME,
            SYSTEM,
            "its pause was to end then",
        ),
        (UNTIL, UNTIL.in_new_generation(GENERATION, NOW, ANN), Action.RESUME, ANN, ""),
        (ACTIVE, ACTIVE.deleted(NOW, LATER, ANN), Action.DELETE, ANN, ""),
        (ACTIVE, ACTIVE.completed(NOW, LATER), Action.COMPLETE, SYSTEM, ""),
        (
            ACTIVE,
            ACTIVE.renamed(GENERATION, NOW, LATER, ANN, "0" * 26),
            Action.RENAME,
            ANN,
            f"to job {'0' * 26}",
        ),
        (None, job(renamed_from="1" * 26), Action.RENAME, ANN, f"from job {'1' * 26}"),
        (ACTIVE, job(segment=9, revision=2), Action.MOVE, SYSTEM, ""),
    ],
)
def test_two_rows_say_what_was_done(
    before: Job | None, after: Job, action: Action, by: Author, note: str
) -> None:
    change = job_change(before, after)

    assert (change.action, change.author, change.note) == (action, by, note)
    assert (change.revision, change.at) == (after.revision, after.updated_at)


def test_a_pause_tells_its_end() -> None:
    shown = {each.path: each.after for each in job_change(ACTIVE, UNTIL).changed}
    assert shown == {"state": '"paused"', "resume_at": '"2026-11-20T13:00:00Z"'}


OTHER = "team/growth"
IDS = ["01KAGZ7T2M9GQ4C5V0Y6N8XWRE", "01KAGZ7T2M9GQ4C5V0Y6N8XWRF", "01KAGZ7T2M9GQ4C5V0Y6N8XWRG"]


def handing_over(owner: str, to: str) -> Operation:
    kind = OperationKind.HAND_OVER
    return Operation(owner, "0" * 26, kind, NOW, NOW, LATER, 1_000, to=to, author=ANN)


def handed_over() -> tuple[Job, Job]:
    """The tombstone of a job, and what the other owner has."""
    operation = handing_over(ACTIVE.owner, OTHER)
    tombstone = ended(ACTIVE, operation, Generation(IDS[0], LATER), LATER, LATER)
    taken = begun(tombstone, operation, IDS[1], LATER, None)
    assert taken is not None
    return settled(tombstone), taken


def test_a_job_that_comes_back_has_come_from_the_other_owner() -> None:
    former, taken = handed_over()
    operation = handing_over(OTHER, ACTIVE.owner)
    left = ended(taken, operation, Generation(IDS[2], LATER), LATER, LATER)
    back = begun(left, operation, IDS[2], LATER, former)
    assert back is not None
    change = job_change(former, back)
    came_from = f"from {OTHER}, where it was {taken.job_id}"
    assert (change.action, change.note) == (Action.HAND_OVER, came_from)
    # That it stays is said where it does.
    stays = taken_back(former, handing_over(ACTIVE.owner, OTHER), IDS[2], LATER)
    assert "it stays" in job_change(former, stays).note


def test_a_job_that_gets_the_name_of_one_that_was_handed_over_has_its_own_past() -> None:
    _, taken = handed_over()
    gone = taken.deleted(LATER, LATER, ANN)
    other_id = job_id_of(OTHER, "other")
    renamed = gone.replaced_by(
        a_job(OTHER, job_id=gone.job_id, renamed_from=other_id, created_at=LATER, author=ANN)
    )
    change = job_change(gone, renamed)
    assert (change.action, change.note) == (Action.RENAME, f"from job {other_id}")
