"""The plugin as users have it: files of theirs, run by pytest in a process of its own."""

from pathlib import Path

import pytest

# Loaded here, so that runs in this process find it: pytester unloads what they import.
import carillon.testing.world  # noqa: F401

pytest_plugins = ["pytester"]

TASKS = '''
from carillon.tasks import Retry, task

synced = {"rounds": 0, "pages": []}


@task
def sync(payload, context):
    """A page an attempt; the state outlives the attempt."""
    synced["rounds"] += 1
    synced["pages"].append(context.fire_at.day)
    if synced["rounds"] % 2:
        raise Retry(after=60, reason="more to come")
    return synced["rounds"]
'''
JOBS = """
manifest: shop
defaults: {timezone: Europe/Riga}
jobs:
  nightly:
    schedule: 30 3 * * *
    target: {type: task, name: sync}
  hook:
    schedule: 0 6 * * 1
    target: {type: webhook, url: https://example.com/weekly}
"""
TESTS = """
import pytest
import tasks


@pytest.mark.carillon(start="2027-03-20", zone="Europe/Riga")
def test_march(carillon):
    weekly = []
    carillon.on_webhook("https://example.com/weekly", weekly.append)
    carillon.apply("jobs.yaml")
    carillon.fail("hook", times=1)
    carillon.outage("ticks", "2027-03-25T03:20", "PT20M")
    carillon.run_until("2027-03-29T07:00")
    assert [r.status for r in carillon.runs("nightly")] == ["succeeded"] * 10
    assert [f"{r.fire_at:%H:%M}" for r in carillon.runs("nightly")][-3:] == [
        "01:30",
        "01:00",
        "00:30",
    ]
    assert {r.attempt for r in carillon.runs("nightly")} == {2}
    assert tasks.synced["rounds"] == 20
    assert [call.attempt for call in weekly] == [2, 1]


def test_alone(carillon):
    assert carillon.now.year == 2027
    with pytest.raises(Exception, match="jobs: none"):
        carillon.runs("nightly")
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(tasks=TASKS, test_jobs=TESTS)
    Path(pytester.path, "jobs.yaml").write_text(JOBS)
    pytester.makeini("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """As users run it, with all plugins that are installed."""
    return project.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


@pytest.fixture
def bare(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """With no other plugin: quicker."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p carillon.testing.plugin -p no:cacheprovider")
    return project


def test_a_users_tests_pass(project: pytest.Pytester) -> None:
    run(project).assert_outcomes(passed=2)


def test_a_failing_test_says_what_was_wrong(bare: pytest.Pytester) -> None:
    bare.makepyfile(
        test_jobs="""
        import time

        from carillon.tasks import task

        @task
        def sync(payload, context):
            time.sleep(payload["seconds"])

        def test_too_long(carillon):
            carillon.put(
                "slow",
                schedule="0 3 * * *",
                target={"type": "task", "name": "sync"},
                payload={"seconds": 60},
            )
            carillon.run_until("04:00")

        def test_typo(carillon):
            carillon.put("slow", shedule="0 3 * * *", target={"type": "task", "name": "sync"})
        """
    )
    result = bare.runpytest_inprocess()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "E * the task 'sync' (job 'slow', fire_at 2027-01-01T03:00:00Z, attempt 1) slept *",
            "E *put('slow'):",
            "E *shedule is not a known field",
        ]
    )


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("(sed=1)", "*'sed' is none of start, zone, seed*"),
        ("(1)", "*takes its options by name*"),
    ],
)
def test_a_bad_marker_is_refused(bare: pytest.Pytester, marker: str, message: str) -> None:
    text = f"import pytest\n@pytest.mark.carillon{marker}\ndef test_it(carillon): ..."
    bare.makepyfile(test_jobs=text)
    result = bare.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


def test_the_closest_marker_counts(bare: pytest.Pytester) -> None:
    bare.makepyfile(
        test_jobs="""
        import pytest

        pytestmark = pytest.mark.carillon(start="2026-05-01T10:00", zone="Europe/Riga")

        @pytest.mark.carillon(start="2026-06-01T10:00")
        def test_it(carillon):
            assert carillon.now.isoformat() == "2026-06-01T07:00:00+00:00"
        """
    )
    bare.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_library_that_is_missing_is_named(bare: pytest.Pytester) -> None:
    bare.makeconftest("import sys\nsys.modules['greenlet'] = None")
    result = bare.runpytest_subprocess("-k", "alone")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*greenlet is missing: pip install 'carillon[[]testing]'"])


def test_tests_without_the_fixture_load_nothing_of_it(bare: pytest.Pytester) -> None:
    bare.makepyfile(
        test_jobs="""
        import sys

        def test_it():
            ours = {name for name in sys.modules if name.split(".")[0] == "carillon"}
            assert ours == {"carillon", "carillon.testing", "carillon.testing.plugin"}
            assert "pydantic" not in sys.modules
        """
    )
    bare.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_plugin_can_be_left_out(project: pytest.Pytester) -> None:
    project.makepyfile(test_jobs="def test_it(carillon): ...")
    result = run(project, "-p", "no:carillon")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'carillon' not found"])
