"""What becomes of entries, whatever their source: names, checks, and the report."""

from typing import Any

import pytest

from carillon.domain.job import PAYLOAD_LIMIT_BYTES
from carillon.importers.document import manifest_text
from carillon.importers.entries import Entry, Note, Stub
from carillon.importers.importing import Imported
from tests.unit.importers.kit import losses, made_of, read_back

TARGET = {"type": "task", "name": "echo"}
GET = {"type": "webhook", "url": "https://example.com", "method": "GET"}


def entry(place: str = "a", wanted: str = "job", **body: Any) -> Entry:
    return Entry(place, wanted, {"target": TARGET, "schedule": "0 3 * * *", **body})


def one(**body: Any) -> Imported:
    return made_of([entry(**body)])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"schedule": "0 25 * * *"}, "schedule"),
        ({"schedule": "at 2027-03-11T11:59:59Z"}, "schedule"),
        ({"end_at": "2027-03-11T12:00:00Z"}, "end_at"),
        ({"timezone": "Mars"}, "timezone"),
        ({"target": {"type": "task", "name": "1"}}, "target.name"),
        ({"catch_up": "all", "grace": "5m"}, "grace"),
        ({"target": GET, "payload": 1}, "payload"),
        ({"payload": "{{nobody}}", "template": True}, "payload"),
        ({"payload": "x" * PAYLOAD_LIMIT_BYTES}, "payload"),
        ({"payload": "\ud800"}, "job"),
        ({"payload": float("inf")}, "job"),
        ({"window": "soon"}, "window"),
        ({"invented": 1}, "invented"),
    ],
)
def test_what_the_api_would_refuse_is_left_out(body: dict[str, Any], field: str) -> None:
    found = one(**body)

    assert (found.jobs, found.left_out) == ({}, 1)
    assert losses(found) == {"a": [field]}


def test_what_the_api_would_take_is_carried_over() -> None:
    found = one(schedule="at 2027-03-11T12:00:01Z", payload="x" * (PAYLOAD_LIMIT_BYTES - 2))
    assert (list(found.jobs), found.left_out) == (["job"], 0)


def test_those_left_out_take_no_name_and_leave_no_task() -> None:
    stub = Stub("echo", "echo")
    left = Entry("a", "job", {"target": TARGET, "schedule": "x"}, (), stub)
    found = made_of([left, entry("b"), entry("c", "JOB"), Entry.left_out("d", "field", "why")])

    assert [(line.entry.place, line.job) for line in found.lines] == [
        ("a", None), ("b", "job"), ("c", "JOB-2"), ("d", None),
    ]  # fmt: skip
    assert losses(found)["c"] == ["name"]
    assert found.stubs == []


def test_members_are_in_the_order_of_the_settings() -> None:
    found = one(tags={"a": "b"}, initial_state="paused", timezone="UTC", payload=1)
    assert list(found.jobs["job"])[:5] == [
        "schedule", "timezone", "target", "payload", "initial_state",
    ]  # fmt: skip


def test_comments_stay_comments() -> None:
    """Whatever a source has in its names and messages."""
    hostile = Note("field\njobs:", "a\nmanifest: other\r\n  x: {target}\u2028y\x85z # \x00")
    found = made_of(
        [
            Entry("a\nb: c", "job", {"target": TARGET, "schedule": "0 3 * * *"}, (hostile,)),
            Entry("d\ne", "", None, (hostile,)),
        ],
        ["line\nmanifest: third"],
    )

    manifest = read_back(found)
    assert (manifest.name, list(manifest.jobs)) == ("imported", ["job"])
    assert manifest_text(found).splitlines()[0] == "# line\\nmanifest: third"
