"""CronJobs of Kubernetes (batch/v1) in files of manifests; the containers stay behind."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from carillon.domain.spec.fields import DAY_SECONDS
from carillon.errors import InvalidFieldError
from carillon.importers.entries import Entry, Json, Note, without_none
from carillon.importers.stubs import Stubs
from carillon.schedules import format_duration

_PREFIX = re.compile(r"(?:CRON_TZ|TZ)=(\S+)\s+(.*)")
_STEP = re.compile(r"\*/0*([2-9]|[1-9]\d+)")
_OPEN_STEP = re.compile(r"(?<![\w-])(\w+)/")
"""A step from one day on: to Saturday there, and here to 7, which is Sunday again."""
_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MOST_LABELS = 20
_LONGEST_TIMEOUT_SECONDS = 55
"""Of an attempt, where the deployment has the default options."""
_LONGEST_GRACE_SECONDS = 14 * DAY_SECONDS
_MINUTE = 60
_BACKOFF = {"base_seconds": 10, "cap_seconds": 360}
"""Kubernetes waits 10 s, 20 s, 40 s and so on between pods, at most six minutes."""
_BACKOFF_LIMIT = 6
_CARRIED = frozenset(
    {
        "schedule",
        "timeZone",
        "suspend",
        "concurrencyPolicy",
        "startingDeadlineSeconds",
        "jobTemplate",
    }
)
_JOB_CARRIED = frozenset({"backoffLimit", "activeDeadlineSeconds", "template"})
_REPETITION = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
"""The annotation in which kubectl keeps the whole object, with the values of the environment."""
_OVERLAPS = {"Allow": None, "Forbid": "skip", "Replace": "queue_one"}
_CHANGED = {
    "Forbid": "when the active run ends Forbid starts the last time that it left out, if the"
    " deadline is not over; skip does not, but queue_one does",
    "Replace": "Replace ends the active run; queue_one lets it end, and runs the next one then",
}


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """`timezone` is that of the controller, for CronJobs that name none."""

    timezone: str = "UTC"
    stubs: Stubs = field(default_factory=Stubs)


def kubernetes_entries(name: str, text: str, options: KubernetesOptions) -> Iterator[Entry]:
    """An entry for each object of a file; raises InvalidFieldError for what is not YAML."""
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        told = " ".join(str(error).split())
        raise InvalidFieldError("files", f"{name} is not YAML: {told}") from error
    for number, document in enumerate(documents, start=1):
        for found in _objects(document):
            yield _entry(f"{name} document {number}", found, options)


def _objects(document: Any) -> Iterator[Any]:
    """The objects of a document; a list of kubectl has many, an empty document none."""
    if isinstance(document, Mapping) and isinstance(document.get("items"), list):
        yield from document["items"]
    elif document is not None:
        yield document


def _entry(place: str, found: Any, options: KubernetesOptions) -> Entry:
    if not isinstance(found, Mapping):
        return Entry.left_out(place, "kind", "is no object of Kubernetes")
    kind = found.get("kind")
    try:
        about = _mapping(found, "metadata")
        place = f"{place}, {kind}/{about.get('name')}"
        if kind != "CronJob":
            return Entry.left_out(place, "kind", f"is {kind}, not CronJob")
        return _cron_job(place, about, _mapping(found, "spec"), options)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return Entry.left_out(place, "spec", f"cannot be read: {error!r}")


def _cron_job(
    place: str, about: Mapping[str, Any], spec: Mapping[str, Any], options: KubernetesOptions
) -> Entry:
    template = _mapping(spec, "jobTemplate")
    job = _mapping(template, "spec")
    times, notes = _times(spec, options.timezone)
    pod = _mapping(job, "template")
    run, more = _containers(_mapping(pod, "spec"))
    called, note, stub = options.stubs.target(str(about["name"]), run)
    tags, lost = _tags(_mapping(about, "labels"))
    policies, changed = _policies(spec, job)
    body = without_none(
        {
            **times,
            **called,
            **policies,
            "parent": about.get("namespace"),
            "tags": tags or None,
            "initial_state": "paused" if spec.get("suspend") else None,
        }
    )
    unused = [
        *_unused("spec", spec, _CARRIED),
        *_unused("spec.jobTemplate", template, frozenset({"spec"})),
        *_unused("spec.jobTemplate.spec", job, _JOB_CARRIED),
        *_unused("spec.jobTemplate.spec.template", pod, frozenset({"spec"})),
        *_unused("metadata.annotations", _mapping(about, "annotations"), _REPETITION),
    ]
    every = (*notes, *changed, note, *more, *lost, *unused)
    return Entry(place, str(about["name"]), body, every, stub)


def _times(spec: Mapping[str, Any], default_zone: str) -> tuple[Json, list[Note]]:
    """The schedule by the rules of robfig/cron, which Kubernetes uses."""
    text, zone = str(spec["schedule"]).strip(), spec.get("timeZone") or default_zone
    notes = []
    prefixed = _PREFIX.fullmatch(text)
    if prefixed is not None:
        zone, text = prefixed.groups()
    if text.lower().startswith("@every"):
        notes.append(Note("spec.schedule", "counts from the epoch here, not from the last run"))
    body: Json = {"schedule": _schedule(text)}
    if zone != "UTC":
        body["timezone"] = zone
        if not text.startswith("@every"):
            # Its tests: a skipped time is left out, and a repeated one runs twice.
            body["dst"] = {"gap": "skip", "fold": "both"}
    return body, notes


def _schedule(text: str) -> str | list[str]:
    """The expression with `*` for `?`, and the end of steps through the week; where a day field has
    a step, which Kubernetes joins by OR and we by AND, the union of two."""
    words = ["*" if word == "?" else word for word in text.split()]
    if len(words) != 5:
        return text
    words[4] = _OPEN_STEP.sub(r"\1-6/", words[4])
    minute, hour, month_day, month, week_day = words
    is_restricted = [word != "*" and word != "*/1" for word in (month_day, week_day)]
    if all(is_restricted) and (_STEP.match(month_day) or _STEP.match(week_day)):
        return [
            f"{minute} {hour} {month_day} {month} *",
            f"{minute} {hour} * {month} {week_day}",
        ]
    return " ".join(words)


def _policies(spec: Mapping[str, Any], job: Mapping[str, Any]) -> tuple[Json, list[Note]]:
    notes: list[Note] = []
    policy = spec.get("concurrencyPolicy") or "Allow"
    if policy in _CHANGED:
        notes.append(Note("spec.concurrencyPolicy", _CHANGED[policy]))
    body: Json = {"overlap": _OVERLAPS[policy], **_lateness(spec, notes)}
    limit = job.get("backoffLimit")
    limit = _BACKOFF_LIMIT if limit is None else int(limit)
    attempts = min(limit + 1, 100)
    if attempts <= limit:
        message = f"{limit} retries are {attempts - 1} here, the most there are"
        notes.append(Note("spec.jobTemplate.spec.backoffLimit", message))
    body["retry"] = {"max_attempts": attempts, "backoff": dict(_BACKOFF)}
    field_name = "spec.jobTemplate.spec.activeDeadlineSeconds"
    deadline = job.get("activeDeadlineSeconds")
    if deadline is not None:
        seconds = body["timeout_seconds"] = min(int(deadline), _LONGEST_TIMEOUT_SECONDS)
        message = f"{deadline} s for the whole Job; timeout_seconds bounds each attempt"
        if seconds < int(deadline):
            message += f", to {seconds} s by the deployment's default options"
        notes.append(Note(field_name, message))
    return body, notes


def _lateness(spec: Mapping[str, Any], notes: list[Note]) -> Json:
    """Without a deadline Kubernetes starts the latest missed run, and so do we."""
    deadline = spec.get("startingDeadlineSeconds")
    if deadline is None:
        return {}
    grace = min(max(int(deadline), _MINUTE), _LONGEST_GRACE_SECONDS)
    message = "of several within the deadline Kubernetes starts the last, Carillon each"
    if grace != int(deadline):
        message = f"{deadline} s is {format_duration(grace)} here; {message}"
    notes.append(Note("spec.startingDeadlineSeconds", message))
    return {"catch_up": "skip", "grace": format_duration(grace)}


def _containers(pod: Mapping[str, Any]) -> tuple[str, list[Note]]:
    """The images and commands in one line, and what else the pod has."""
    notes, runs = [], []
    for container in [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]:
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        runs.append(" ".join(map(str, [container.get("image"), *words])))
        names = [str(variable.get("name")) for variable in container.get("env") or ()]
        if names:
            where = f"container {container.get('name')}: env"
            notes.append(Note(where, f"not carried over: {', '.join(names)}"))
        others = sorted(set(container) - {"name", "image", "command", "args", "env"})
        if others:
            where = f"container {container.get('name')}"
            notes.append(Note(where, f"not carried over: {', '.join(others)}"))
    others = sorted(set(pod) - {"containers", "initContainers"})
    if others:
        notes.append(Note("pod", f"not carried over: {', '.join(others)}"))
    return "; ".join(runs) or "nothing", notes


def _tags(labels: Mapping[str, Any]) -> tuple[dict[str, str], list[Note]]:
    fit = {key: str(value) for key, value in labels.items() if _LABEL.fullmatch(key)}
    tags = dict(list(fit.items())[:_MOST_LABELS])
    lost = [key for key in labels if key not in tags]
    notes = [Note("metadata.labels", f"no tags: {', '.join(lost)}")] if lost else []
    return tags, notes


def _unused(path: str, found: Mapping[str, Any], carried: frozenset[str]) -> Iterator[Note]:
    for name in sorted(set(found) - carried):
        text = json.dumps(found[name], default=str, ensure_ascii=False)
        yield Note(f"{path}.{name}", f"not carried over: {text}")


def _mapping(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A member that is an object; an empty one where there is none. Raises TypeError."""
    value = found.get(name) or {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is no object")
    return value
