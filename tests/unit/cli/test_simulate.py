"""`carillon simulate`: a manifest from a file, what is printed of it, and how it is refused."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from carillon.cli.commands.simulation import live
from carillon.cli.commands.simulation import report as simulate_report
from carillon.cli.exits import ExitCode
from carillon.cli.polling import Interrupts
from carillon.domain.wheel.delaying import ROUNDED_UP_SECONDS
from tests.unit.cli.conftest import Run

MANIFEST = """
jobs:
  report:
    schedule: 0 6 * * *
    timezone: Europe/Berlin
    target: {type: task, name: report}
  sync:
    schedule: every 5m
    target: {type: webhook, url: https://example.com/sync}
simulate:
  sync: {seconds: 2.5, failure_rate: 0.2, copies: 3}
"""
FROM = ("--from", "2026-12-01T00:00:00Z")


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "jobs.yaml"
    path.write_text(MANIFEST)
    return str(path)


def test_the_summary_for_people(run: Run, manifest: str) -> None:
    result = run("simulate", manifest, *FROM, "--for", "24h", "--first", "2")

    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "4 jobs from 2026-12-01T00:00:00Z to 2026-12-02T00:00:00Z, seed 0"
    name, *counts, report_lag, _, first = lines[3].split()
    assert (name, counts, first) == ("report", ["1", "1", "1", "0", "0"], "2026-12-01T05:00:00Z")
    assert float(report_lag) <= ROUNDED_UP_SECONDS
    assert lines[4].split()[:3] == ["sync", "3", "864"]
    assert lines[4].endswith("2026-12-01T00:00:00Z, 2026-12-01T00:05:00Z")
    (lag,) = (line for line in lines if line.startswith("lag "))
    # A delay is rounded up by a tenth of a second at most (carillon.domain.wheel.delaying).
    assert re.fullmatch(r"lag {13}median 0\.0\d\d s, p99 0\.0\d\d s, max 0\.0\d\d s", lag)
    assert "no outcome yet  0 of 865 that were due" in lines
    assert any(line.startswith("busiest seconds") for line in lines)


def test_the_summary_as_json(run: Run, manifest: str) -> None:
    result = run("simulate", manifest, *FROM, "--for", "PT6H", "--json")

    summary = json.loads(result.stdout)
    assert (summary["fires"], summary["due"], summary["open"]) == (217, 217, 0)
    assert sum(summary["outcomes"].values()) == 217
    assert summary["retries"] > 0
    assert summary["is_interrupted"] is False
    assert summary["peaks"]["minutes"][0]["starts"] >= 4


def test_an_outage_and_its_catch_up(run: Run, manifest: str) -> None:
    options = ("--out-of-service", "ticks 2026-12-01T03:00/PT20M", "--json")

    summary = json.loads(run("simulate", manifest, *FROM, "--for", "6h", *options).stdout)

    assert summary["skips"]["catch_up"] > 0
    assert sum(summary["outcomes"].values()) + summary["skips"]["catch_up"] >= summary["due"]
    assert (summary["due"], summary["open"]) == (217, 0)


def test_an_outage_may_name_its_end(run: Run, manifest: str) -> None:
    options = ("--out-of-service", "executors 2026-12-01T03:00:30Z/2026-12-01T03:30:00Z", "--json")

    summary = json.loads(run("simulate", manifest, *FROM, "--for", "6h", *options).stdout)

    # Of 03:05 to 03:25, of each copy: at 03:30 the latest one is due.
    assert summary["skips"] == {"catch_up": 15}


def test_runs_are_written_one_a_line(run: Run, manifest: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"

    run("simulate", manifest, *FROM, "--for", "6h", "--runs", str(path))

    runs = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(runs) == 217
    assert {record["status"] for record in runs} <= {"succeeded", "dead"}
    (report,) = (record for record in runs if record["job_name"] == "report")
    assert report["fire_at"] == report["started_at"] == "2026-12-01T05:00:00Z"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_disk_is_told(run: Run, manifest: str) -> None:
    result = run("simulate", manifest, *FROM, "--for", "6h", "--runs", "/dev/full")

    assert result.exit_code == ExitCode.BAD_INPUT
    assert "runs: /dev/full cannot be written" in result.stderr


def test_a_replay_shows_runs_as_they_end(
    run: Run, manifest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_FRAME_SECONDS", 0.001)

    result = run("simulate", manifest, *FROM, "--for", "10m", "--speed", "6000")

    shown = [line for line in result.stdout.splitlines() if "lag 0.0" in line]
    assert len(shown) == 6
    assert shown[0].startswith("2026-12-01T00:00:00Z  succeeded  sync-")


def test_a_seed_gives_the_same_in_every_process(manifest: str) -> None:
    faults = "dies=0.01,lost=0.02,stale=0.1,tick_missing=0.05"
    command = [
        sys.executable,
        "-m",
        "carillon.cli.main",
        "simulate",
        manifest,
        *FROM,
        "--for",
        "3h",
    ]
    command += ["--faults", faults, "--json", "--seed"]

    def told(seed: str, hash_seed: str) -> Any:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([*command, seed], capture_output=True, check=True, env=environment)
        return done.stdout

    first = told("7", "1")
    assert first == told("7", "2")
    assert json.loads(first)["faults"] != json.loads(told("8", "1"))["faults"]


def test_ten_days_of_a_daily_job_take_seconds(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    job = {"schedule": "0 3 * * *", "target": {"type": "task", "name": "x"}}
    path.write_text(json.dumps({"jobs": {"d": job}}))
    began = time.process_time()

    summary = json.loads(run("simulate", str(path), *FROM, "--for", "10d", "--json").stdout)

    assert summary["fires"] == summary["due"] == 10
    assert time.process_time() - began < 15, "it takes about two"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("jobs: [", "bad.yaml is not YAML: line 1"),
        ("{}", "jobs: must have at least one job"),
        ("jobs:\n  a: {schedul: x}", "jobs.a.schedul: is not a known field"),
        (MANIFEST.replace("every 5m", "every 5x"), "jobs.sync.schedule:"),
        (MANIFEST.replace("0 6 * * *", "at 2020-01-01"), "bad.yaml, line 4)"),
    ],
)
def test_a_bad_manifest_is_told_by_job_and_field(
    run: Run, tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)

    result = run("simulate", str(path), *FROM)

    assert (result.exit_code, result.stdout) == (ExitCode.BAD_INPUT, "")
    assert told in result.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--from", "yesterday"), "from:"),
        (("--for", "0s"), "for: must be from 1s to 366d"),
        (("--for", "two days"), "for:"),
        (("--faults", "dyes=0.1"), "faults: 'dyes' is none of dies,"),
        (("--out-of-service", "api 2026-12-01/PT1H"), "out-of-service:"),
        (("--out-of-service", "ticks 2026-12-01"), "out-of-service:"),
        (("--out-of-service", "ticks 2026-12-01/x"), "out-of-service:"),
        (("--out-of-service", "ticks 2026-12-01/2026-11-30"), "ends before it begins"),
        (("--runs", "/nowhere/at/all/runs.jsonl"), "runs:"),
        ((*FROM, "--out-of-service", "ticks 2026-12-02T00:00/PT1H"), "lies outside"),
        ((*FROM, "--out-of-service", "executors 2026-11-30/2026-12-01"), "lies outside"),
    ],
)
def test_bad_options_are_told(run: Run, manifest: str, options: tuple[str, ...], told: str) -> None:
    result = run("simulate", manifest, *options)

    assert (result.exit_code, result.stdout) == (ExitCode.BAD_INPUT, "")
    assert told in result.stderr


def test_a_file_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    result = run("simulate", str(tmp_path / "none.yaml"))

    assert result.exit_code == ExitCode.BAD_INPUT
    assert "cannot be read" in result.stderr


def test_a_replay_tells_callbacks_and_covered_occurrences_from_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_FRAME_SECONDS", 0.001)
    path = tmp_path / "manifest.yaml"
    task = "{type: task, name: t}"
    path.write_text(f"jobs: {{a: {{schedule: every 5m, target: {task}, on_success: {task}}}}}")
    options = ("--out-of-service", "ticks 2026-12-01T00:20/PT40M", "--speed", "60000")

    shown = run("simulate", str(path), *FROM, "--for", "2h", *options).stdout.splitlines()

    assert shown[0].startswith("2026-12-01T00:00:00Z  succeeded  a  lag 0.0")
    assert shown[1].startswith("2026-12-01T00:00:00Z  succeeded  a  callback")
    assert any("skipped (catch_up)  a  6 occurrences" in line for line in shown)


def test_a_terminal_gets_fire_times_in_a_table_of_their_own(
    run: Run, manifest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight columns do not fit into 80."""
    tables: list[tuple[str, ...]] = []
    monkeypatch.setattr(simulate_report, "_is_terminal", lambda: True)
    monkeypatch.setattr(
        simulate_report, "write_table", lambda columns, rows: tables.append((*columns, *rows[0]))
    )

    run("simulate", manifest, *FROM, "--for", "6h")

    assert "first_fire_at" not in tables[0]
    assert tables[1] == ("job", "first_fire_at", "report", "2026-12-01T05:00:00Z")


def test_a_replay_is_for_people(run: Run, manifest: str) -> None:
    assert run("simulate", manifest, "--speed", "60", "--json").exit_code == ExitCode.USAGE


def test_the_first_interrupt_is_a_wish_and_the_second_an_order() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        assert interrupts.go_on()
        os.kill(os.getpid(), signal.SIGINT)
        assert not interrupts.go_on()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_ends_with_the_summary_so_far(manifest: str) -> None:
    command = [sys.executable, "-m", "carillon.cli.main", "simulate", manifest, *FROM]
    command += ["--speed", "600"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("2026-12-01T00:00:00Z  succeeded")
    process.send_signal(signal.SIGINT)

    told, alert = process.communicate(timeout=60)

    # A script must not take a part for the whole.
    assert (process.returncode, alert) == (130, "")
    assert "Interrupted: these are the figures so far" in told
    assert "cost " in told
