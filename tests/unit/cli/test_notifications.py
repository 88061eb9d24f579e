"""`carillon notifications put`."""

from carillon.cli.exits import ExitCode
from tests.unit.cli.conftest import FakeApi, Run

PUT = ("notifications", "put", "ops", "--on", "run.dead", "--email", "ops@example.com")


def test_the_options_are_the_body(signed_in: Run, api: FakeApi) -> None:
    api.answer("PUT", "/notifications/ops", {"name": "ops"})

    assert signed_in(*PUT, "--tag", "team=a", "--tag", "env=").exit_code == ExitCode.OK

    assert api.requests[0].body == {
        "on": ["run.dead"],
        "tags": {"team": "a", "env": ""},
        "to": {"type": "email", "address": "ops@example.com"},
    }


def test_a_tag_with_two_values_is_refused(signed_in: Run, api: FakeApi) -> None:
    refused = signed_in(*PUT, "--tag", "team=a", "--tag", "team=b")

    assert refused.exit_code == ExitCode.BAD_INPUT
    assert "  tags: team has two values" in refused.stderr
    assert not api.requests
