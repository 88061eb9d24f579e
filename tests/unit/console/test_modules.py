"""Modules of the console, run by node on what the API answers."""

import json
import shutil
import subprocess
from typing import Any

import carillon.console
from carillon.cli.commands.manifests.export import exported
from tests.unit.api.conftest import BODY, create, new_world
from tests.unit.api.gateway import Client

_BROWSER = """
globalThis.document = { documentElement: { dataset: {} }, baseURI: "http://127.0.0.1/" };
globalThis.sessionStorage = { getItem: () => null };
globalThis.localStorage = globalThis.sessionStorage;
globalThis.addEventListener = () => {};
"""


def made_by(module: str, expression: str, given: Any) -> Any:
    """The expression's value: of the module's exports, `m`, and of what is given."""
    node = shutil.which("node")
    assert node, "no node in PATH: make setup"
    address = (carillon.console.FOLDER / module).as_uri()
    script = (
        f"{_BROWSER}const m = await import({json.dumps(address)});"
        f"const given = {json.dumps(given)}; console.log(JSON.stringify({expression}));"
    )
    command = [node, "--input-type=module", "-e", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_a_definition_says_what_the_command_exports() -> None:
    """The API answers every member of a job, in an order of its own."""
    client = Client(new_world().api())
    retry = {"backoff": {"cap_seconds": 60}}
    more: dict[str, Any] = {
        "target": {"type": "webhook", "url": "https://example.com"},
        "retry": retry,
        "tags": {"a": ""},
        "payload": {"b": None, "c": []},
    }
    jobs = [
        create(client),
        create(client, name="other", **more),
        create(client, name="c", payload=[]),
    ]
    told = made_by("lib/definition.js", "given.map(m.settingsOf)", jobs)
    assert told[0] == {"schedule": BODY["schedule"], "target": BODY["target"]}
    assert (told[1]["retry"], told[1]["payload"]) == (retry, more["payload"])
    no_calendars: Any = None
    assert told == list(exported(no_calendars, jobs, None)["jobs"].values())


def test_the_parameter_with_a_channels_address_is_shown_and_stays_one() -> None:
    ops, slack = "/carillon/ops", {"type": "slack", "url": {"parameter": "/carillon/ops"}}
    shown = (
        "[m.channelText(given), m.channelOf(given, 'slack', 'x'), m.channelOf(given, 'sns', '')]"
    )
    assert made_by("pages/notification.js", shown, slack) == [
        f"slack {ops}",
        {"type": "slack", "url": {"parameter": "x"}},
        {"type": "sns", "topic_arn": ""},
    ]
