"""CronJobs of Kubernetes."""

import json
from typing import Any

import pytest

from carillon.errors import InvalidFieldError
from carillon.importers.importing import Imported
from carillon.importers.kubernetes import KubernetesOptions, kubernetes_entries
from tests.unit.importers.kit import fire_times, losses, made_of, read_back, told

CRONJOBS = """
apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
  namespace: billing
  labels: {team: billing, app.kubernetes.io/name: nightly}
  annotations: {owner: ops}
spec:
  schedule: "30 2 * * *"
  timeZone: America/New_York
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 300
  successfulJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 3600
      ttlSecondsAfterFinished: 60
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: main
            image: example.com/billing:1.2
            command: [python, -m, billing]
            args: [--all]
            env: [{name: PASSWORD, value: secret}, {name: MODE, value: fast}]
            resources: {limits: {cpu: 1}}
---
apiVersion: v1
kind: List
items:
- apiVersion: batch/v1beta1
  kind: CronJob
  metadata: {name: stepped}
  spec:
    schedule: "0 0 */10 * 1"
    suspend: false
    concurrencyPolicy: Replace
    jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: a}]}}}}
- kind: CronJob
  metadata: {name: paused}
  spec:
    schedule: "@hourly"
    suspend: true
    jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: a}]}}}}
- kind: ConfigMap
  metadata: {name: settings}
---
"""
FIRST = "jobs.yaml document 1, CronJob/nightly"
STEPPED = "jobs.yaml document 2, CronJob/stepped"
PAUSED = "jobs.yaml document 2, CronJob/paused"
OTHER = "jobs.yaml document 2, ConfigMap/settings"


def made(text: str = CRONJOBS, **options: Any) -> Imported:
    return made_of(kubernetes_entries("jobs.yaml", text, KubernetesOptions(**options)))


def cron_job(**spec: Any) -> Imported:
    """One CronJob with these members of its spec; those of the Job in `job`."""
    job = {"template": {"spec": {"containers": [{"image": "a"}]}}, **spec.pop("job", {})}
    spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": job}, **spec}
    return made(json.dumps({"kind": "CronJob", "metadata": {"name": "one"}, "spec": spec}))


def test_a_cron_job_becomes_a_job() -> None:
    assert made().jobs["nightly"] == {
        "schedule": "30 2 * * *",
        "timezone": "America/New_York",
        "dst": {"gap": "skip", "fold": "both"},
        "target": {"type": "task", "name": "nightly"},
        "catch_up": "skip",
        "grace": "5m",
        "overlap": "skip",
        "retry": {"max_attempts": 3, "backoff": {"base_seconds": 10, "cap_seconds": 360}},
        "timeout_seconds": 55,
        "parent": "billing",
        "tags": {"team": "billing"},
    }


def test_every_loss_is_listed() -> None:
    found = made()

    assert losses(found) == {
        FIRST: [
            "spec.concurrencyPolicy",
            "spec.startingDeadlineSeconds",
            "spec.jobTemplate.spec.activeDeadlineSeconds",
            "target",
            "container main: env",
            "container main",
            "pod",
            "metadata.labels",
            "spec.successfulJobsHistoryLimit",
            "spec.jobTemplate.spec.ttlSecondsAfterFinished",
            "metadata.annotations.owner",
        ],
        STEPPED: ["spec.concurrencyPolicy", "target"],
        PAUSED: ["target"],
        OTHER: ["kind"],
    }
    assert told(found, FIRST, "container main: env") == "not carried over: PASSWORD, MODE"
    assert "queue_one does" in told(found, FIRST, "spec.concurrencyPolicy")
    assert told(found, FIRST, "container main") == "not carried over: resources"
    assert told(found, FIRST, "target").endswith("example.com/billing:1.2 python -m billing --all")
    assert "secret" not in str(found)


def test_what_kubectl_has_kept_of_the_environment_is_told_nowhere() -> None:
    """`kubectl apply` keeps the object whole in an annotation, which `get -o yaml` shows."""
    kept = 'kubectl.kubernetes.io/last-applied-configuration: "{PASSWORD: secret}", owner: ops'
    found = made(CRONJOBS.replace("annotations: {owner: ops}", f"annotations: {{{kept}}}"))

    assert "metadata.annotations.owner" in losses(found)[FIRST]
    assert "secret" not in str(found)


def test_defaults_are_those_of_kubernetes() -> None:
    job = made().jobs["stepped"]

    assert job["retry"] == {
        "max_attempts": 7,
        "backoff": {"base_seconds": 10, "cap_seconds": 360},
    }
    assert job["overlap"] == "queue_one"
    assert not {"timezone", "dst", "grace", "catch_up", "timeout_seconds"} & job.keys()
    assert made().jobs["paused"]["initial_state"] == "paused"


def test_jobs_fire_as_kubernetes_starts_them() -> None:
    """Clocks in New York: forward on 14 March 2027, back on 7 November. robfig/cron leaves a
    skipped time out, and runs a repeated one twice ("1am nightly job (runs twice)")."""
    spring = fire_times(read_back(made()), "2027-03-13T00:00:00", "2027-03-16T00:00:00", 5)
    assert spring["nightly"] == ["2027-03-13T07:30:00Z", "2027-03-15T06:30:00Z"]

    text = CRONJOBS.replace("30 2", "30 1")
    autumn = fire_times(read_back(made(text)), "2027-11-06T12:00:00", "2027-11-09T00:00:00", 5)
    assert autumn["nightly"] == [
        "2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z", "2027-11-08T06:30:00Z",
    ]  # fmt: skip


def test_a_day_field_with_a_step_is_joined_by_or() -> None:
    """robfig/cron: `*/10` is no star. March 2027 begins with a Monday."""
    job = made().jobs["stepped"]
    assert job["schedule"] == ["0 0 */10 * *", "0 0 * * 1"]

    found = fire_times(read_back(made()), "2027-03-28T00:00:00", "2027-04-02T00:00:00", 9)
    assert [text[5:10] for text in found["stepped"]] == ["03-29", "03-31", "04-01"]


def test_a_step_through_the_week_ends_on_saturday() -> None:
    """robfig/cron: `1/2` is Monday, Wednesday and Friday. Ours, as cronsim, takes Sunday as 7."""
    found = read_back(cron_job(schedule="0 3 * * 1/2"))
    fires = fire_times(found, "2027-03-14T00:00:00", "2027-03-22T00:00:00", 9)
    assert [text[5:10] for text in fires["one"]] == ["03-15", "03-17", "03-19"]


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("0 3 ? * ?", "0 3 * * *"),
        ("0 3 1 * 1", "0 3 1 * 1"),
        ("0 3 */1 * 1", "0 3 */1 * 1"),
        ("0 3 */2 * *", "0 3 */2 * *"),
        ("0 3 1 * */2", ["0 3 1 * *", "0 3 * * */2"]),
        ("0 3 * * 1/2", "0 3 * * 1-6/2"),
        ("0 3 * * tue-thu/2,mon/3", "0 3 * * tue-thu/2,mon-6/3"),
        ("@daily", "@daily"),
        ("@every 90m", "@every 90m"),
    ],
)
def test_schedules(text: str, schedule: object) -> None:
    assert cron_job(schedule=text).jobs["one"]["schedule"] == schedule


def test_a_zone_in_the_schedule_is_that_of_the_job() -> None:
    job = cron_job(schedule="CRON_TZ=Europe/Riga 0 3 * * *").jobs["one"]
    assert (job["schedule"], job["timezone"]) == ("0 3 * * *", "Europe/Riga")


def test_the_zone_of_the_controller() -> None:
    jobs = made(timezone="Asia/Tokyo").jobs
    assert (jobs["stepped"]["timezone"], jobs["nightly"]["timezone"]) == (
        "Asia/Tokyo",
        "America/New_York",
    )


@pytest.mark.parametrize(
    ("seconds", "grace"), [(10, "1m"), (60, "1m"), (86_400, "1d"), (10_000_000, "14d")]
)
def test_a_deadline_is_a_grace_within_bounds(seconds: int, grace: str) -> None:
    job = cron_job(startingDeadlineSeconds=seconds).jobs["one"]
    assert (job["catch_up"], job["grace"]) == ("skip", grace)


def test_limits_beyond_ours_are_cut_and_told() -> None:
    found = cron_job(job={"backoffLimit": 500, "activeDeadlineSeconds": 30})

    assert found.jobs["one"]["retry"]["max_attempts"] == 100
    assert found.jobs["one"]["timeout_seconds"] == 30
    place = "jobs.yaml document 1, CronJob/one"
    assert "99 here" in told(found, place, "spec.jobTemplate.spec.backoffLimit")


def test_what_is_null_has_its_default_there() -> None:
    """Templates leave many a value empty."""
    names = ("suspend", "concurrencyPolicy", "startingDeadlineSeconds")
    limits = dict.fromkeys(("backoffLimit", "activeDeadlineSeconds"))
    assert cron_job(**dict.fromkeys(names), job=limits).jobs == cron_job().jobs


@pytest.mark.parametrize(
    "text",
    [
        "kind: CronJob",
        "{kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {}}}",
        "{kind: CronJob, metadata: {name: a}, spec: 3}",
        "{kind: CronJob, metadata: {name: a}, spec: {schedule: x, concurrencyPolicy: Never}}",
        "{kind: CronJob, metadata: {name: a}, spec: {schedule: 0 3 31 2 *}}",
        "{kind: CronJob, metadata: {name: a}, spec: {schedule: 0 3 * * *, timeZone: Mars}}",
        "- a list",
        "text",
    ],
)
def test_what_cannot_be_read_is_left_out(text: str) -> None:
    found = made(text)
    assert (found.jobs, found.left_out) == ({}, 1)
    assert found.lines[0].entry.notes


def test_what_is_no_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidFieldError, match=r"jobs\.yaml is not YAML: .*line 2"):
        made("a: 1\n  b: {{ template }}\n")
