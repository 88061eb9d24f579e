"""diff, apply and export against the Api itself: one file says how the jobs are to be."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from carillon.cli.commands.manifests import applying
from carillon.cli.commands.manifests.applying import calls_of
from carillon.cli.exits import ExitCode
from carillon.manifest.manifest import Manifest
from carillon.manifest.yaml_text import document_of, text_of
from tests.settings import FUNCTION, GOOD, body_of
from tests.unit.api.conftest import NOW, SETTINGS, World, new_world
from tests.unit.api.wsgi import serving
from tests.unit.cli.conftest import Run

MANIFEST = """\
manifest: billing
defaults: {timezone: Europe/Riga}
calendars:
  holidays: {dates: [2026-12-25]}
jobs:
  report:
    schedule: 0 6 * * 1-5
    target: {type: task, name: report}
    calendar: {name: holidays}
  sync:
    schedule: every 5m
    target: {type: webhook, url: https://example.com/sync}
"""
Carillon = Callable[..., Result]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    # They are written to stdout, which here is the command's.
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    made = new_world(NOW)
    made.settings = replace(SETTINGS, event_bus="bus", target_arns=(FUNCTION,))
    return made


@pytest.fixture
def carillon(world: World, run: Run) -> Iterator[Carillon]:
    with serving(world) as url:
        yield lambda *words: run("--api-url", url, "--token", "t", *words)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.yaml"
    path.write_text(MANIFEST)
    return path


def jobs_of(carillon: Carillon) -> dict[str, Any]:
    return {job["name"]: job for job in json.loads(carillon("jobs", "list", "--json").stdout)}


def test_diff_apply_diff(carillon: Carillon, file: Path) -> None:
    before = carillon("diff", str(file))
    assert (before.exit_code, before.stderr) == (ExitCode.DIFFERENT, "")
    lines = before.stdout.splitlines()
    assert lines[0].split() == ["+", "create", "holidays"]
    assert re.fullmatch(
        r"\+ create +report +every weekday at 06:00 .*Riga.*, next 2026-03-02T04:00:00Z", lines[1]
    )
    digest = lines[-1].partition("; digest ")[2]
    assert lines[-1] == f"3 to create; digest {digest}"
    assert not jobs_of(carillon), "a diff writes nothing"

    applied = carillon("apply", str(file), "--expect", digest)
    assert (applied.exit_code, applied.stderr) == (ExitCode.OK, "")
    assert applied.stdout.splitlines()[-1] == "3 created"
    assert jobs_of(carillon)["sync"]["changed_by"]["via"] == "apply"

    after = carillon("diff", str(file))
    assert (after.exit_code, after.stdout) == (ExitCode.OK, "3 unchanged\n")


def test_a_change_shows_what_differs(carillon: Carillon, file: Path) -> None:
    carillon("apply", str(file))
    file.write_text(MANIFEST.replace("every 5m", "every 7m\n    overlap: skip"))

    shown = carillon("diff", str(file)).stdout.splitlines()

    assert [line.strip() for line in shown] == [
        "~ change      sync  schedule: every 5m -> every 7m",
        "overlap: allow -> skip",
        "every 7 minutes, next 2026-03-01T12:07:00Z",
        shown[-1],
    ]
    assert shown[-1].startswith("2 unchanged, 1 to change; digest ")
    assert carillon("apply", str(file)).exit_code == ExitCode.OK
    assert jobs_of(carillon)["sync"]["overlap"] == "skip"


def test_what_a_job_says_drives_no_terminal(carillon: Carillon, file: Path) -> None:
    odd, target = "\x1b[31m", {"type": "task", "name": "t"}
    jobs: dict[str, Any] = {"a": {"schedule": "every 5m", "target": target, "payload": {odd: 0}}}
    file.write_text(text_of({"manifest": "m", "jobs": jobs}))
    carillon("apply", str(file))
    jobs["a"]["payload"] = {odd: 1}
    jobs["b"] = {"after": odd, "target": target}
    file.write_text(text_of({"manifest": "m", "jobs": jobs}))

    shown = carillon("diff", str(file)).stdout

    assert (r"payload.\x1b[31m: 0 -> 1" in shown, odd in shown) == (True, False)


def test_what_is_refused_is_told_with_its_line_and_nothing_is_written(
    carillon: Carillon, file: Path
) -> None:
    file.write_text(MANIFEST.replace("every 5m", "every 5x"))

    for command in ("diff", "apply"):
        result = carillon(command, str(file))
        assert result.exit_code == ExitCode.BAD_INPUT
        line = next(line for line in result.stdout.splitlines() if "refused" in line)
        assert line.startswith("! refused     sync      schedule: ")
        assert line.endswith("(" + str(file) + ", line 11)")
    assert not jobs_of(carillon)


def test_a_manifest_without_name_is_refused(carillon: Carillon, file: Path) -> None:
    file.write_text(MANIFEST.replace("manifest: billing", ""))

    result = carillon("apply", str(file))
    assert (result.exit_code, "manifest: is required" in result.stderr) == (3, True)


def test_a_removed_job_stays_unless_it_is_pruned_and_comes_back(
    carillon: Carillon, file: Path
) -> None:
    carillon("apply", str(file))
    carillon("jobs", "create", "--name", "own", "--schedule", "@daily", "--task", "echo")
    file.write_text(MANIFEST[: MANIFEST.index("  sync:")])

    assert carillon("diff", str(file)).stdout == "2 unchanged\n"
    assert "- delete      sync" in carillon("diff", str(file), "--prune").stdout
    assert sorted(jobs_of(carillon)) == ["own", "report", "sync"]
    refused = carillon("apply", str(file), "--prune")
    assert (refused.exit_code, "repeat with --yes" in refused.stderr) == (ExitCode.USAGE, True)
    assert carillon("apply", str(file), "--prune", "--yes").stdout.endswith("1 deleted\n")
    assert sorted(jobs_of(carillon)) == ["own", "report"]
    file.write_text(MANIFEST)
    assert "^ revive      sync" in carillon("apply", str(file), "--prune").stdout


def test_a_refused_item_prunes_nothing(carillon: Carillon, file: Path) -> None:
    carillon("apply", str(file))
    file.write_text(MANIFEST[: MANIFEST.index("  sync:")].replace("0 6 * * 1-5", "never"))

    assert carillon("apply", str(file), "--prune", "--yes").exit_code == ExitCode.BAD_INPUT
    assert sorted(jobs_of(carillon)) == ["report", "sync"]


def test_drift_is_a_conflict_until_it_is_overwritten(carillon: Carillon, file: Path) -> None:
    carillon("apply", str(file))
    refused = carillon("jobs", "change", "sync", "--overlap", "skip")
    assert (refused.exit_code, "manifest/billing" in refused.stderr) == (ExitCode.CONFLICT, True)
    assert carillon("jobs", "change", "sync", "--overlap", "skip", "--force").exit_code == 0

    drifted = carillon("diff", str(file))
    assert drifted.exit_code == ExitCode.CONFLICT
    assert "owner-1 (cli) made its revision 2, the latest" in drifted.stdout
    assert "overlap: skip -> allow" in drifted.stdout
    assert carillon("apply", str(file)).exit_code == ExitCode.CONFLICT
    assert jobs_of(carillon)["sync"]["overlap"] == "skip"
    assert carillon("apply", str(file), "--force").exit_code == ExitCode.OK
    assert carillon("diff", str(file)).exit_code == ExitCode.OK


def test_a_managed_job_is_deleted_by_force_only(carillon: Carillon, file: Path) -> None:
    carillon("apply", str(file))

    assert carillon("jobs", "delete", "sync").exit_code == ExitCode.CONFLICT
    assert carillon("jobs", "delete", "sync", "--force").exit_code == ExitCode.OK
    assert sorted(jobs_of(carillon)) == ["report"]


def test_a_paused_job_stays_paused(carillon: Carillon, file: Path) -> None:
    carillon("apply", str(file))
    carillon("jobs", "pause", "sync")
    file.write_text(MANIFEST.replace("every 5m", "every 7m"))

    shown = carillon("apply", str(file)).stdout.splitlines()

    assert shown[1].strip() == "every 7 minutes", "once it is resumed"
    job = jobs_of(carillon)["sync"]
    assert (job["state"], job["schedule"]) == ("paused", "every 7m")


def test_the_plan_that_was_reviewed_and_no_other(carillon: Carillon, file: Path) -> None:
    digest = carillon("diff", str(file)).stdout.strip().rpartition(" ")[2]
    file.write_text(MANIFEST.replace("every 5m", "every 7m"))

    result = carillon("apply", str(file), "--expect", digest)
    assert (result.exit_code, "The plan has changed" in result.stderr) == (6, True)
    assert not jobs_of(carillon)


def test_as_json(carillon: Carillon, file: Path) -> None:
    told = json.loads(carillon("diff", str(file), "--json").stdout)

    assert told["counts"] == {"create": 3}
    assert {item["name"] for item in told["items"]} == {"holidays", "report", "sync"}
    assert len(told["digest"]) == 64


def test_what_is_exported_is_applied_elsewhere_without_a_difference(
    carillon: Carillon, world: World, file: Path, tmp_path: Path, run: Run
) -> None:
    document = document_of(MANIFEST)
    plain = document["jobs"]["sync"]
    document["jobs"]["nightly"] = plain
    for number, (name, value, _) in enumerate(GOOD):
        if name not in ("name", "target"):
            document["jobs"][f"{name} {number}"] = body_of(name, value, plain)
    file.write_text(text_of(document))
    assert carillon("apply", str(file)).exit_code == ExitCode.OK, carillon("diff", str(file)).stdout
    carillon("jobs", "pause", "sync")

    exported = carillon("export", "--manifest", "billing").stdout

    assert "# sync is paused" in exported
    assert document_of(exported)["jobs"]["sync"] == {
        "schedule": "every 5m",
        "timezone": "Europe/Riga",
        "target": {"type": "webhook", "url": "https://example.com/sync", "method": "POST"},
    }
    copy = tmp_path / "copy.yaml"
    copy.write_text(exported)
    assert carillon("diff", str(copy)).stdout.endswith(" unchanged\n")
    elsewhere = new_world(NOW)
    elsewhere.settings = world.settings
    with serving(elsewhere) as url:
        options = ("--api-url", url, "--token", "t")
        assert run(*options, "apply", str(copy)).exit_code == ExitCode.OK
        assert run(*options, "diff", str(copy)).exit_code == ExitCode.OK
        again = run(*options, "export", "--manifest", "billing").stdout
    assert document_of(again) == document_of(exported)


def test_export_takes_all_jobs_or_some(carillon: Carillon, file: Path) -> None:
    carillon("apply", str(file))
    carillon(
        "jobs", "create", "--name", "own", "--schedule", "@daily", "--task", "x", "--tag", "a=b"
    )

    assert sorted(document_of(carillon("export").stdout)["jobs"]) == ["own", "report", "sync"]
    assert list(document_of(carillon("export", "--tag", "a=b").stdout)["jobs"]) == ["own"]
    told = json.loads(carillon("export", "--manifest", "billing", "--json").stdout)
    assert sorted(told["jobs"]) == ["report", "sync"]
    assert told["calendars"] == {"holidays": {"dates": ["2026-12-25"]}}


def test_export_goes_on_where_a_calendar_is_gone(
    carillon: Carillon, world: World, file: Path
) -> None:
    carillon("apply", str(file))
    calendar = world.calendars.get("user/owner-1", "holidays")
    assert calendar is not None
    world.calendars.delete("user/owner-1", "holidays", calendar.revision)

    told = carillon("export")

    assert told.exit_code == ExitCode.OK
    assert told.stderr == "The calendar 'holidays' is gone: to apply this manifest, define it\n"
    document = document_of(told.stdout)
    assert document["jobs"]["report"]["calendar"]["name"] == "holidays"
    assert "calendars" not in document


def test_a_large_manifest_is_split_and_calendars_go_with_their_jobs(
    monkeypatch: pytest.MonkeyPatch, carillon: Carillon, tmp_path: Path
) -> None:
    monkeypatch.setattr(applying, "MOST_JOBS", 3)
    job = {"schedule": "every 5m", "target": {"type": "task", "name": "t"}}
    followed = {**job, "calendar": {"name": "c"}}
    jobs = {f"job-{number}": followed if number % 2 else job for number in range(8)}
    document = {"manifest": "m", "jobs": jobs, "calendars": {"c": {}, "alone": {}}}
    calls = list(calls_of(Manifest.of(document), prune=True))
    assert [len(call.get("jobs", ())) for call in calls] == [3, 3, 2, 0, 0]
    assert [list(call.get("calendars", ())) for call in calls] == [
        ["c"],
        ["c"],
        ["c"],
        ["alone"],
        [],
    ]
    assert calls[-1] == {"keep": list(jobs)}
    file = tmp_path / "many.yaml"
    file.write_text(text_of(document))

    digest = carillon("diff", str(file)).stdout.strip().rpartition(" ")[2]
    applied = carillon("apply", str(file), "--prune")
    assert applied.stdout.endswith("10 created\n"), applied.output
    assert len(digest) == 64
    assert carillon("diff", str(file), "--prune").stdout == "10 unchanged\n"


def test_a_job_goes_in_one_call_with_those_that_run_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(applying, "MOST_JOBS", 3)
    plain = {"schedule": "every 5m"}
    names = ("one", "two", "three", "nightly", "four", "last")
    jobs: dict[str, Any] = dict.fromkeys(names, plain)
    jobs |= {"first": {"after": "Nightly"}, "last": {"after": {"job": "nightly", "when": "failed"}}}
    calls = list(calls_of(Manifest.of({"manifest": "m", "jobs": jobs}), prune=False))
    assert [list(call["jobs"]) for call in calls] == [
        ["one", "two", "three"],
        ["nightly", "last", "first"],
        ["four"],
    ]


def test_lists_show_what_a_job_runs_after(carillon: Carillon) -> None:
    created = ("jobs", "create", "--task", "echo", "--name")
    carillon(*created, "nightly", "--schedule", "@daily")
    made = carillon(*created, "report", "--after", "nightly:failed")
    assert "nightly (failed)" in made.stdout, made.output
    assert "after nightly failed" in carillon("jobs", "list").stdout


def test_an_apply_that_was_killed_is_repeated(
    carillon: Carillon, world: World, tmp_path: Path
) -> None:
    """One that wrote a part: the next one does the rest, and nothing twice."""
    job = {"schedule": "every 5m", "target": {"type": "task", "name": "t"}}
    file = tmp_path / "jobs.yaml"
    half = {f"job-{number}": job for number in range(4)}
    file.write_text(text_of({"manifest": "m", "jobs": half}))
    carillon("apply", str(file))
    file.write_text(
        text_of({"manifest": "m", "jobs": half | {f"other-{n}": job for n in range(4)}})
    )

    assert carillon("apply", str(file)).stdout.endswith("4 unchanged, 4 created\n")
    assert {job["revision"] for job in jobs_of(carillon).values()} == {1}


def test_a_diff_can_be_rehearsed(carillon: Carillon, file: Path) -> None:
    carillon("apply", str(file))
    file.write_text(MANIFEST.replace("every 5m", "every 1m"))

    line = carillon("diff", str(file), "--rehearse", "1h").stdout.splitlines()[-2]

    # In the hour before six, on a workday, the other job fires, too.
    assert re.match(r"fires 1[2-4] -> 6[0-2]; busiest minute [12] -> [12], at 2", line), line
    assert re.search(r"; cost \$0\.\d\d -> \$0\.\d\d$", line), line
    refused = carillon("diff", str(file), "--rehearse", "soon")
    assert (refused.exit_code, "rehearse:" in refused.stderr) == (ExitCode.BAD_INPUT, True)


@pytest.mark.parametrize(
    ("begun", "action", "fires"), [("paused", "resume", 12), ("active", "pause", 0)]
)
def test_a_rehearsal_has_jobs_in_the_state_that_they_are_in(
    carillon: Carillon, file: Path, begun: str, action: str, fires: int
) -> None:
    job = {"schedule": "every 5m", "target": {"type": "task", "name": "t"}, "initial_state": begun}
    file.write_text(text_of({"manifest": "m", "jobs": {"a": job}}))
    carillon("apply", str(file))
    carillon("jobs", action, "a")
    file.write_text(text_of({"manifest": "m", "jobs": {"B": {**job, "was": "A"}}}))

    plan = carillon("diff", str(file), "--rehearse", "1h").stdout

    assert f"fires {fires} -> {fires};" in plan


def test_both_sides_of_a_rehearsal_have_the_same_targets(carillon: Carillon, file: Path) -> None:
    job = {"schedule": "every 5m", "target": {"type": "task", "name": "t"}}
    document = {"manifest": "m", "jobs": {"a": job}, "simulate": {"a": {"copies": 3}}}
    file.write_text(text_of(document))
    carillon("apply", str(file))

    assert "fires 36 -> 36;" in carillon("diff", str(file), "--rehearse", "1h").stdout
    document["simulate"] = {"a": {"copies": 0}}
    file.write_text(text_of(document))
    refused = carillon("diff", str(file), "--rehearse", "1h")
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert re.search(r"simulate\.a\.copies: .* \(.*, line \d+\)", refused.stderr)


def test_a_rehearsal_has_the_jobs_that_stay_whatever_they_are_called(
    carillon: Carillon, file: Path
) -> None:
    more = MANIFEST + "  none: {schedule: every 1m, target: {type: task, name: t}}\n"
    file.write_text(more)
    carillon("apply", str(file))
    file.write_text(MANIFEST.replace("every 5m", "every 10m").replace("  sync:", "  Sync:"))

    line = carillon("diff", str(file), "--rehearse", "1h").stdout.splitlines()[-2]

    assert re.match(r"fires 7[2-5] -> 6[6-9];", line), line


def test_what_was_imported_is_applied_as_it_is(carillon: Carillon, run: Run, file: Path) -> None:
    spec = {"schedule": "0 0 */10 * 1", "timeZone": "Europe/Riga", "jobTemplate": {}}
    jobs = [
        {"kind": "CronJob", "metadata": {"name": "stepped"}, "spec": spec},
        {"kind": "CronJob", "metadata": {"name": "idle"}, "spec": {**spec, "suspend": True}},
    ]
    file.write_text(json.dumps({"items": jobs}))

    file.write_text(run("import", "k8s", str(file)).stdout)

    assert carillon("apply", str(file)).exit_code == ExitCode.OK
    assert {name: job["state"] for name, job in jobs_of(carillon).items()} == {
        "idle": "paused",
        "stepped": "active",
    }
    after = carillon("diff", str(file))
    assert (after.exit_code, after.stdout) == (ExitCode.OK, "2 unchanged\n")


def test_a_renamed_job_is_not_pruned(carillon: Carillon, file: Path) -> None:
    carillon("apply", str(file))
    file.write_text(MANIFEST.replace("  sync:", "  pull:\n    was: sync"))

    plan = carillon("diff", str(file), "--prune", "--rehearse", "10m").stdout
    assert ("= rename      pull" in plan, "delete" in plan) == (True, False)
    # At six on a workday the other job fires, too.
    assert re.search(r"fires ([23]) -> \1; busiest minute ([12]) -> \2", plan), plan
    done = carillon("apply", str(file), "--prune")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "2 unchanged, 1 renamed")
    assert carillon("diff", str(file), "--prune").exit_code == ExitCode.OK


def test_a_prune_has_a_limit_that_is_told(carillon: Carillon, tmp_path: Path) -> None:
    job = {"schedule": "every 5m", "target": {"type": "task", "name": "t"}}
    file = tmp_path / "jobs.yaml"
    file.write_text(json.dumps({"manifest": "m", "jobs": {f"j{n}": job for n in range(10_001)}}))

    refused = carillon("diff", str(file), "--prune")
    assert (refused.exit_code, "at most 10,000 jobs" in refused.stderr) == (3, True)


def test_a_reason_of_several_lines_stays_a_comment(carillon: Carillon, file: Path) -> None:
    carillon("apply", str(file))
    carillon("jobs", "pause", "sync", "--reason", "see\nmanifest: evil")

    exported = carillon("export", "--manifest", "billing").stdout
    assert document_of(exported)["manifest"] == "billing"
