"""The team that commands act for."""

import pytest

from tests.unit.cli.conftest import FakeApi, Run

STATUS = {"state": "idle"}


@pytest.mark.parametrize(
    ("before", "behind", "variable", "sent"),
    [
        ((), (), None, None),
        ((), ("--team", "billing"), None, "billing"),
        (("--team", "billing"), (), None, "billing"),
        ((), (), "billing", "billing"),
        (("--team", "shipping"), ("--team", "billing"), "other", "billing"),
        ((), (), "", None),
    ],
)
def test_requests_name_the_team(
    signed_in: Run,
    api: FakeApi,
    monkeypatch: pytest.MonkeyPatch,
    before: tuple[str, ...],
    behind: tuple[str, ...],
    variable: str | None,
    sent: str | None,
) -> None:
    if variable is not None:
        monkeypatch.setenv("CARILLON_TEAM", variable)
    api.answer("GET", "/jobs", {"items": [], "next_cursor": None})
    result = signed_in(*before, "jobs", "list", *behind)
    assert result.exit_code == 0, result.output
    assert [request.headers.get("carillon-team") for request in api.requests] == [sent]


@pytest.mark.parametrize("team", ["", "Billing", "a b"])
def test_what_is_no_team_is_not_sent(signed_in: Run, api: FakeApi, team: str) -> None:
    result = signed_in("jobs", "list", "--team", team)
    assert result.exit_code == 3
    assert "team" in result.stderr
    assert api.requests == []
