"""`carillon changes` against an API that answers what it is told to."""

from typing import Any

from tests.unit.cli.conftest import FakeApi, Run

CHANGE: dict[str, Any] = {
    "change_id": "c",
    "at": "2026-11-20T00:00:00Z",
    "by": {"kind": "person", "id": "sub-1", "name": "ann"},
    "via": "cli",
    "subject": "job",
    "name": "nightly",
    "job_id": "j",
    "job_name": "nightly",
    "action": "change",
    "revision": 2,
    "changed": [
        {"path": "schedule", "before": "every 5m", "after": "every 6m"},
        {"path": "tags.a", "before": None, "after": "ü"},
    ],
    "note": None,
    "source": None,
}


def test_a_change_is_a_line(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/changes", {"items": [CHANGE], "next_cursor": None})

    result = signed_in("changes", "--by", "ann", "--wide")

    assert result.exit_code == 0, result.output
    assert 'schedule: "every 5m" -> "every 6m", tags.a: null -> "ü"' in result.stdout
    assert "ann" in result.stdout
    assert "nightly" in result.stdout
    assert api.requests[0].query["by"] == "ann"


def test_without_a_name_the_id_is_shown(signed_in: Run, api: FakeApi) -> None:
    nameless = {**CHANGE, "by": {"kind": "machine", "id": "client-7", "name": ""}}
    api.answer("GET", "/changes", {"items": [nameless], "next_cursor": None})

    assert "client-7" in signed_in("changes", "--wide").stdout
