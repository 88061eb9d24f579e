"""Every setting as an option: the table of options, and what the options send."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from carillon.cli.options_table import OPTIONS
from carillon.domain.spec.options import JobOption
from tests import options_table
from tests.settings import GOOD, SETTINGS
from tests.unit.cli.conftest import FakeApi, Run


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    sent = {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return sent | {"key": sent.get("key", "")} if "per" in sent else sent


# Nothing is given by what is empty, and the API's defaults need not be.
_GIVEN = [(name, value) for name, value, _ in GOOD if value and _without_nulls(value)]


def test_the_tables_of_options_are_what_the_settings_are_marked_with() -> None:
    assert options_table.FILE.read_text(encoding="utf-8") == options_table.text(), "make options"
    assert options_table.PAGE.read_text(encoding="utf-8") == options_table.page(), "make options"


def test_every_setting_has_an_option() -> None:
    assert {option.path.partition(".")[0] for option in OPTIONS} == set(SETTINGS)


@pytest.mark.parametrize(("name", "value"), _GIVEN)
def test_a_setting_is_sent_as_it_is_given(
    signed_in: Run, api: FakeApi, name: str, value: Any
) -> None:
    api.answer("PATCH", "/jobs/j1", {"job_id": "j1", "revision": 2})
    given = [text for option in OPTIONS for text in _arguments(option, name, value)]

    result = signed_in("jobs", "change", "j1", *given)

    assert result.exit_code == 0, result.stderr
    assert api.requests[0].body == _without_nulls({name: value})


def _arguments(option: JobOption, name: str, value: Any) -> Iterator[str]:
    """The command line that gives the part of a setting's value that is this option's."""
    root, *path = option.path.split(".")
    for member in path if root == name else ():
        value = (value or {}).get(member)
    if root != name or value is None:
        return
    for each in value if option.kind == "list" and isinstance(value, list) else [value]:
        match root:
            case "concurrency":
                yield from (option.flag, f"{each['key']}={each['limit']}")
            case "rate":
                key = f"{each['key']}=" if each.get("key") else ""
                yield from (option.flag, f"{key}{each['limit']}/{each['per']}")
            case "tags":
                yield from (text for tag in each.items() for text in (option.flag, "=".join(tag)))
            case "payload":
                yield from (option.flag, json.dumps(each))
            case _ if each is True:
                yield option.flag
            case _:
                yield from (option.flag, each if isinstance(each, str) else json.dumps(each))
