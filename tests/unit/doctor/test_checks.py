"""What the doctor says of a deployment on which all is well, and of planted misconfigurations."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.doctor.dispatching import examine
from carillon.doctor.facts import (
    UNREADABLE,
    AlarmFacts,
    FunctionFacts,
    MappingFacts,
    QueueFacts,
    RuleFacts,
    SetAside,
    Snapshot,
    TableFacts,
    Unknown,
)
from carillon.doctor.verdicts import Level, Verdict
from carillon.domain.job import Lane
from carillon.domain.wheel.entry import minute_of
from carillon.domain.wheel.segment import Backlog, Control
from carillon.settings import Settings

NOW = datetime(2026, 12, 1, 12, 0, 30, tzinfo=UTC)
MINUTE = minute_of(NOW)
URLS = {lane: f"https://sqs.eu-west-1.amazonaws.com/1/{lane.value}" for lane in Lane}
VARIABLES = {"PYTHONTZPATH": "/none"}


def settings(**variables: str) -> Settings:
    urls = {lane.value: url for lane, url in URLS.items()}
    given = {"JOBS_TABLE": "jobs", "WHEEL_TABLE": "wheel", "RUNS_TABLE": "runs", "SEGMENTS": "2"}
    return Settings.from_environment({**given, "LANE_QUEUES": json.dumps(urls), **variables})


def function(name: str, service: str, **facts: Any) -> FunctionFacts:
    loop = "Allow" if service in ("executor", "dead-letter-consumer") else "Terminate"
    reserved = 2 if service == "tick" else None
    layers, state = ("layer:1",), "Active"
    made = FunctionFacts(name, service, state, 60, "a1", layers, VARIABLES, reserved, loop)
    return replace(made, **facts)


def queue(name: str, **facts: Any) -> QueueFacts:
    url = f"https://sqs.eu-west-1.amazonaws.com/1/{name}"
    return replace(QueueFacts(url, f"arn:aws:sqs:eu-west-1:1:{name}", 360, 0, 0), **facts)


def mapping(name: str, function: str, limit: int | None) -> MappingFacts:
    return MappingFacts(f"uuid-{name}", queue(name).arn, function, "live", "Enabled", limit)


def table(name: str, **facts: Any) -> TableFacts:
    return replace(TableFacts(name, "ACTIVE", "ttl", True, 6_000), **facts)


def control(segment: int, **members: Any) -> Control:
    at = Control(segment, horizon=MINUTE + 2, watermark=MINUTE + 2, token=7, tzdata="2026.1")
    return replace(at, **members)


EXECUTORS = {lane: function(f"executor-{lane.value}", "executor") for lane in Lane}
DEAD = queue("dead")
HEALTHY = Snapshot(
    stack="Carillon",
    at=NOW,
    settings=settings(),
    unreserved=1000,
    functions=(
        function("tick", "tick"),
        function("api", "api"),
        function("consumer", "dead-letter-consumer"),
        *EXECUTORS.values(),
    ),
    mappings=(
        *(mapping(lane.value, EXECUTORS[lane].name, 50) for lane in Lane),
        mapping("dead", "consumer", None),
    ),
    queues=(*(queue(lane.value) for lane in Lane), DEAD),
    rules=(RuleFacts("every-minute", enabled=True, targets=1),),
    tables={role: table(role) for role in ("jobs", "wheel", "runs")},
    alarms=(AlarmFacts("one", "OK", 1, enabled=True), AlarmFacts("two", "OK", 1, enabled=True)),
    controls={0: control(0), 1: control(1)},
    secret="a" * 44,
    skew_seconds=0.1,
)


def test_a_deployment_on_which_all_is_well_is_all_ok() -> None:
    assert {each.level for each in examine(HEALTHY)} == {Level.OK}


def changed(name: str, number: int, **facts: Any) -> dict[str, Any]:
    """One of a sequence of facts, otherwise."""
    all_of = list(getattr(HEALTHY, name))
    all_of[number] = replace(all_of[number], **facts)
    return {name: tuple(all_of)}


LAGGING = {0: control(0), 1: control(1, horizon=MINUTE - 40, watermark=MINUTE - 40)}
STOPPED = {n: control(n, horizon=MINUTE - 40, watermark=MINUTE - 40) for n in (0, 1)}
AHEAD = {n: control(n, horizon=MINUTE + 30) for n in (0, 1)}
BACKLOG = Backlog(MINUTE - 90, MINUTE - 60, MINUTE - 1, NOW)
BEHIND = {0: control(0, backlog=(BACKLOG,)), 1: control(1)}
BROKEN = {0: control(0), 1: Unknown("control item of segment 1: token", UNREADABLE)}
GONE = "ResourceNotFoundException"
REVERT = "make deploy OPTIONS=--revert-drift"
LOST = SetAside(1, "m29730240", "job#filing", "KeyError: 'kind'")
PLANTED: list[tuple[str, Mapping[str, Any], str, str]] = [
    ("concurrency", {"unreserved": 219}, "219 places", "quota"),
    ("tick's own concurrency", changed("functions", 0, reserved=0), "0 places", REVERT),
    ("tick's own concurrency", changed("functions", 0, reserved=0), "0 places", "delete-function"),
    ("functions", {"functions": HEALTHY.functions[1:]}, "no tick", REVERT),
    ("functions", changed("functions", 1, state="Failed"), "api is Failed", "read the error"),
    ("release", changed("functions", 1, release="b2"), "are live: a1, b2", "admin release RELEASE"),
    ("release", changed("functions", 1, release=""), "without a name", "admin release RELEASE"),
    ("tzdata", changed("functions", 1, layers=("layer:0",)), "2 different", "admin release"),
    ("PYTHONTZPATH", changed("functions", 0, variables={}), "tick", f"/none: {REVERT}"),
    ("recursion: executor-high", changed("functions", 3, recursive_loop="Terminate"), "not", "16"),
    ("recursion: api", changed("functions", 1, recursive_loop="Allow"), "not", REVERT),
    ("mapping: high", changed("mappings", 0, state="Disabled"), "Disabled", "uuid-high --enabled"),
    ("mapping: dead", {"mappings": HEALTHY.mappings[:-1]}, "none", REVERT),
    ("mapping: high", changed("mappings", 0, qualifier=""), "$LATEST", "executor-high:live"),
    ("mapping: high", changed("mappings", 0, qualifier="7"), "calls 7", "--uuid uuid-high"),
    ("mapping: high", changed("mappings", 0, max_concurrency=None), "no maximum", REVERT),
    ("mapping: dead", changed("mappings", 4, max_concurrency=5), "maximum concurrency: 5", REVERT),
    ("visibility: high", changed("queues", 0, visibility_seconds=60), "360 s", REVERT),
    ("dead-letter queue", changed("queues", 4, messages=3, oldest_seconds=90), "90 s", "log"),
    ("rule", changed("rules", 0, enabled=False), "no tick comes", "enable-rule"),
    ("rule", {"rules": ()}, "no tick comes", REVERT),
    ("root tick", changed("rules", 0, targets=3), "3 ticks", REVERT),
    ("last tick", {"controls": {0: None, 1: None}}, "no tick has visited", "rule enabled"),
    ("last tick", {"controls": STOPPED}, "42 minutes ago", "rule enabled"),
    ("last tick", {"controls": AHEAD}, "28 minutes ahead", "clock"),
    ("dispatch", {"controls": LAGGING}, "1 by 39 min", "tick_workers"),
    ("dispatch", {"controls": BEHIND}, "0 by 59 min", "catches up"),
    ("segment 1", {"controls": BROKEN}, "token", "mend-segment 1"),
    ("entries set aside", {"set_aside": (LOST,)}, "m29730240", "reindex --segment 1"),
    ("expiry of runs", {"tables": {"runs": table("runs", expires_by="")}}, "off", REVERT),
    ("recovery of jobs", {"tables": {"jobs": table("jobs", recovers=False)}}, "off", "switch"),
    ("table jobs", {"tables": {"jobs": table("jobs", status="DELETING")}}, "DELETING", "console"),
    ("alarms", {"alarms": ()}, "none", REVERT),
    ("alarms raised", changed("alarms", 1, state="ALARM"), "two", "operate.md"),
    ("alarm actions", changed("alarms", 0, actions=0), "mute: one", "enable-alarm-actions"),
    ("signing secret", {"secret": Unknown("none", GONE)}, "none", "24"),
    ("signing secret", {"secret": "short"}, "5 characters", "24"),
    ("clock of this machine", {"skew_seconds": -9.0}, "-9.0 s", "set it"),
]


@pytest.mark.parametrize(("check", "facts", "said", "advice"), PLANTED)
def test_a_planted_misconfiguration_is_red_with_the_right_advice(
    check: str, facts: Mapping[str, Any], said: str, advice: str
) -> None:
    red = wrong(replace(HEALTHY, **facts))
    found = [each for each in red if each.check == check]
    assert found, red
    assert said in found[0].text
    assert advice in found[0].advice
    others = {each.check for each in red} - {check}
    related = {"dispatch", "last tick", "functions"}
    assert others <= related, "one mistake is told of once"


def wrong(seen: Snapshot) -> list[Verdict]:
    return [each for each in examine(seen) if each.level is Level.WRONG]


def test_what_cannot_be_known_is_neither_ok_nor_wrong() -> None:
    hidden = Unknown("not kept")
    functions = tuple(replace(f, reserved=hidden, recursive_loop=hidden) for f in HEALTHY.functions)
    tables = {"jobs": table("jobs", expires_by=hidden, recovers=hidden)}
    seen = replace(
        HEALTHY,
        unreserved=hidden,
        functions=functions,
        tables=tables,
        set_aside=hidden,
        skew_seconds=None,
    )
    unknown = [each for each in examine(seen) if each.level is Level.UNKNOWN]
    assert len(unknown) == 2 + len(functions) + 2 + 1 + 1
    assert wrong(seen) == []
    assert all("not kept" in each.text or "database" in each.text for each in unknown)


def test_a_refusal_is_no_defect() -> None:
    refused = Unknown("not authorized to perform", "AccessDeniedException")
    mappings = (refused, *HEALTHY.mappings[1:])
    seen = replace(HEALTHY, secret=refused, mappings=mappings, unreserved=100)
    assert wrong(seen) == []
    unknown = {each.check: each for each in examine(seen) if each.level is Level.UNKNOWN}
    assert set(unknown) == {"signing secret", "mapping: high", "concurrency"}
    assert all("not authorized" in each.text and not each.advice for each in unknown.values())


def test_an_entry_is_deleted_only_where_a_reindex_has_not_mended_it() -> None:
    def told(entry: SetAside) -> Verdict:
        found = examine(replace(HEALTHY, set_aside=(entry,)))
        return next(each for each in found if each.check == "entries set aside")

    advice = told(LOST).advice
    assert advice.index("reindex --segment 1") < advice.index("delete that item")
    mended = told(replace(LOST, is_readable=True))
    assert mended.level is Level.ADVICE
    assert "leave it" in mended.advice


@pytest.mark.parametrize(
    ("check", "facts", "advice"),
    [
        ("growth", {"tables": {"wheel": table("wheel", items=3_000_000)}}, "segments to 8"),
        ("growth", {"settings": settings(TICK_WORKERS="3")}, "segments=12"),
        ("tick's own concurrency", changed("functions", 0, reserved=None), "--revert-drift"),
        ("alarm actions", {"alarms": (AlarmFacts("a", "OK", 0, enabled=True),)}, "alarm_email"),
    ],
)
def test_advice_alone_is_not_red(check: str, facts: Mapping[str, Any], advice: str) -> None:
    found = [each for each in examine(replace(HEALTHY, **facts)) if each.check == check]
    assert [each.level for each in found] == [Level.ADVICE]
    assert advice in found[0].advice


def test_history_without_recovery_is_a_choice() -> None:
    seen = replace(HEALTHY, tables={"runs": table("runs", recovers=False)})
    assert wrong(seen) == []


def test_a_tick_that_is_a_little_late_is_no_fault() -> None:
    at = NOW + timedelta(minutes=3)
    controls = {n: control(n, horizon=MINUTE + 2, watermark=MINUTE + 2) for n in (0, 1)}
    assert wrong(replace(HEALTHY, at=at, controls=controls)) == []
