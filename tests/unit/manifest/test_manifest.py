"""The form of manifests: each fault is named by its place, and several files are one manifest."""

from typing import Any

import pytest

from carillon.errors import InvalidFieldError
from carillon.manifest.manifest import Manifest, ManifestFile, ManifestRefusedError

JOB: dict[str, Any] = {"schedule": "@hourly", "target": {"type": "task", "name": "echo"}}


def refusal(document: object) -> dict[str, str]:
    with pytest.raises(ManifestRefusedError) as caught:
        Manifest.of(document)
    return {".".join(path): message for path, message in caught.value.errors}


def files(*texts: str) -> list[ManifestFile]:
    return [ManifestFile(f"{number}.yaml", text) for number, text in enumerate(texts)]


def test_defaults_are_merged_one_level_deep() -> None:
    manifest = Manifest.of(
        {
            "manifest": "billing",
            "defaults": {"timezone": "Europe/Riga", "retry": {"max_attempts": 5}},
            "jobs": {
                "report": JOB,
                "sync": {**JOB, "timezone": "UTC", "retry": {"jitter": "none"}},
                "once": {**JOB, "retry": None},
            },
        }
    )

    assert manifest.name == "billing"
    assert manifest.jobs["report"] == {
        **JOB,
        "timezone": "Europe/Riga",
        "retry": {"max_attempts": 5},
    }
    assert manifest.jobs["sync"]["timezone"] == "UTC"
    assert manifest.jobs["sync"]["retry"] == {"max_attempts": 5, "jitter": "none"}
    assert manifest.jobs["once"]["retry"] is None


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        (None, "file", "must be an object"),
        ([JOB], "file", "must be an object"),
        ({"job": {}}, "job", "a manifest has manifest, defaults, calendars, jobs, simulate"),
        ({"jobs": [JOB]}, "jobs", "must be an object, by name"),
        ({"jobs": {"a": "x"}}, "jobs.a", "must be an object"),
        ({"jobs": {7: JOB}}, "jobs.7", "must be text"),
        ({"jobs": {"a": {**JOB, "name": "b"}}}, "jobs.a.name", "is the key here"),
        ({"defaults": {"name": "b"}}, "defaults.name", "omit it"),
        ({"defaults": []}, "defaults", "must be an object"),
        ({"calendars": {"days": 7}}, "calendars.days", "must be an object"),
        ({"jobs": {"a": JOB}, "simulate": {"b": {}}}, "simulate.b", "names no job"),
        ({"manifest": "two words"}, "manifest", "letters, digits"),
        ({"manifest": 7}, "manifest", "letters, digits"),
    ],
)
def test_each_fault_is_named_by_its_place(document: object, path: str, message: str) -> None:
    assert message in refusal(document)[path]


def test_several_files_are_one_manifest_each_with_its_own_defaults() -> None:
    manifest = Manifest.of_files(
        files(
            "manifest: m\ndefaults: {timezone: Europe/Riga}\njobs: {a: {schedule: x}}",
            "jobs: {b: {schedule: y}}\ncalendars: {days: {}}",
        )
    )

    assert manifest.name == "m"
    assert manifest.jobs == {
        "a": {"timezone": "Europe/Riga", "schedule": "x"},
        "b": {"schedule": "y"},
    }
    assert list(manifest.calendars) == ["days"]
    assert manifest.located(("jobs", "b", "schedule"), "bad") == "bad (1.yaml, line 1)"


def test_what_a_simulation_reads_may_be_in_a_file_of_its_own() -> None:
    manifest = Manifest.of_files(files("simulate: {a: {seconds: 2}}", "jobs: {a: {}}"))

    assert manifest.simulate == {"a": {"seconds": 2}}


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("jobs: {a: {}}", "\njobs: {a: {}}"), "is in 0.yaml, too (1.yaml, line 2)"),
        (("manifest: a", "manifest: b"), "0.yaml has 'a' (1.yaml, line 1)"),
        (("{}", "manifest: a", "manifest: b"), "1.yaml has 'a' (2.yaml, line 1)"),
        (("jobs: {}", "jobs:\n  a:\n    name: b"), "omit it (1.yaml, line 3)"),
        (("simulate:\n  b: {}", "jobs: {a: {}}"), "names no job of this manifest (0.yaml, line 2)"),
    ],
)
def test_a_fault_is_told_with_its_file_and_line(texts: tuple[str, ...], told: str) -> None:
    with pytest.raises(ManifestRefusedError) as caught:
        Manifest.of_files(files(*texts))
    assert told in str(caught.value)


def test_a_file_that_is_not_yaml_is_named() -> None:
    with pytest.raises(InvalidFieldError, match=r"1\.yaml is not YAML: line 2"):
        Manifest.of_files(files("jobs: {}", "\njobs: ["))
