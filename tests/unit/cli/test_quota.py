"""`carillon quota` against an API that answers what it is told to."""

from typing import Any

import pytest

from tests.unit.cli.conftest import FakeApi, Run


def _quotas(**own: int) -> dict[str, Any]:
    defaults = {
        "jobs": 10_000,
        "scheduled_per_minute": 0,
        "starts_per_minute": 0,
        "concurrent_runs": 0,
        "requests_per_second": 20,
    }
    return {
        "owner": "team/billing",
        "quotas": [
            {"name": name, "limit": own.get(name, limit), "own": name in own, "use": None}
            for name, limit in defaults.items()
        ],
    }


def test_the_own_limits_are_a_table(signed_in: Run, api: FakeApi) -> None:
    told = _quotas(jobs=20_000)
    told["quotas"][0]["use"] = 12
    api.answer("GET", "/quota", told)

    lines = signed_in("quota", "show").stdout.splitlines()

    assert lines[0].split() == ["name", "limit", "use", "set", "by"]
    assert lines[1].split()[:3] == ["jobs", "20000", "12"]
    assert lines[1].endswith("an operator")
    assert "none" in lines[2]


def test_those_of_an_owner(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/owners/user/auth0%7C7/quota", _quotas())
    assert signed_in("quota", "show", "user/auth0|7").exit_code == 0


def test_setting_one_leaves_the_others(signed_in: Run, api: FakeApi) -> None:
    path = "/owners/team/billing/quota"
    api.answer("GET", path, _quotas(jobs=5, concurrent_runs=40))
    api.answer("PUT", path, _quotas(jobs=7, starts_per_minute=0))

    result = signed_in(
        "quota", "set", "team/billing", "jobs=7", "starts_per_minute=0", "concurrent_runs=default"
    )

    assert result.exit_code == 0, result.output
    assert api.requests[-1].body == {"jobs": 7, "starts_per_minute": 0, "concurrent_runs": None}


@pytest.mark.parametrize("text", ["job=7", "jobs", "jobs=", "jobs=-1", "jobs=many", "=7"])
def test_what_is_no_limit_is_refused(signed_in: Run, api: FakeApi, text: str) -> None:
    api.answer("GET", "/owners/team/billing/quota", _quotas())

    result = signed_in("quota", "set", "team/billing", text)

    assert result.exit_code == 2
    assert "NAME=LIMIT" in result.output
    assert [each.method for each in api.requests] == ["GET"]


@pytest.mark.parametrize("owner", ["billing", "system/carillon", "team/"])
def test_what_is_no_owner_is_refused(signed_in: Run, api: FakeApi, owner: str) -> None:
    result = signed_in("quota", "show", owner)

    assert result.exit_code != 0
    assert "team/billing" in result.output
    assert api.requests == []
