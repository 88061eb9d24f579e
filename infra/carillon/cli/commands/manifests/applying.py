"""A manifest's calls of POST /apply: its parts, planned all before the first is carried out."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from carillon.cli.client import ApiClient, Json
from carillon.cli.display.progress import Show, no_progress
from carillon.cli.exits import CliError, ExitCode
from carillon.domain.spec.together import groups_of
from carillon.manifest.manifest import Manifest

MOST_JOBS = 1_000
MOST_BYTES = 900_000
"""Of one call; the API takes 1,000 jobs, and a body of 1 MiB."""
MOST_KEPT = 10_000
_TRIES = 5
"""Of a call that reaches nothing more."""
_BLOCKING = ("refused", "drift", "unavailable")
_PATH = "/apply"
_PLAN_CHANGED = ":plan-changed"
"""The end of the type of the problem that refuses an apply of another plan."""
_ANOTHER_PLAN = "The plan has changed", "others change the same jobs meanwhile: review it again"


@dataclass(frozen=True, slots=True)
class Plan:
    """The items of all calls; `digests` are those of the calls, in order."""

    items: Sequence[Json]
    digests: Sequence[str]

    @property
    def counts(self) -> Counter[str]:
        return Counter(str(item["action"]) for item in self.items)

    @property
    def digest(self) -> str:
        """The digest of the whole plan."""
        return hashlib.sha256("\n".join(self.digests).encode()).hexdigest()

    @property
    def is_blocked(self) -> bool:
        return any(self.counts[action] for action in _BLOCKING)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to do."""
        return set(self.counts) <= {"none"}

    @property
    def exit_code(self) -> ExitCode:
        """The code that ends a command with this plan, where an item of it cannot be."""
        problems = [item["problem"] for item in self.items if item.get("problem")]
        statuses = {int(problem["status"]) for problem in problems}
        for code, found in (
            (ExitCode.BAD_INPUT, statuses & {400, 413, 422}),
            (ExitCode.CONFLICT, statuses & {409, 412}),
            (ExitCode.UNREACHABLE, statuses),
        ):
            if found:
                return code
        return ExitCode.OK


@dataclass(slots=True)
class Applier:
    """One manifest against one deployment; `options` are members of each call, as `force`."""

    api: ApiClient
    manifest: Manifest
    options: Json
    show: Show = no_progress
    sleep: Callable[[float], None] = time.sleep
    _calls: list[Json] = field(default_factory=list)
    _plans: list[Json] = field(default_factory=list)

    def plan(self, *, prune: bool) -> Plan:
        """The plan of every call; nothing is written."""
        self._calls = list(calls_of(self.manifest, prune=prune))
        self._plans = []
        for call in self._calls:
            self._plans.append(self._planned(call))
            self._tell("compared", self._plans)
        return _plan(self._plans)

    def carry_out(self) -> tuple[Plan, bool]:
        """Carry out each call as it was planned, pruning last; True if all of it is done. It stops
        at the first call that is not. Raises CliError where the plan is another one by then."""
        answers: list[Json] = []
        for call, planned in zip(self._calls, self._plans, strict=True):
            answers.append(self._carried_out(call, planned))
            self._tell("applied", answers)
            if not answers[-1]["complete"]:
                break
        is_done = len(answers) == len(self._calls) and all(each["complete"] for each in answers)
        return _plan(answers), is_done

    def _planned(self, call: Json) -> Json:
        """The plan of one call; again where a part of it was not reached."""
        answer = self._sent({**call, "dry_run": True})
        for tried in range(_TRIES):
            if answer["complete"]:
                break
            self.sleep(2.0**tried / 2)
            answer = self._sent({**call, "dry_run": True})
        return answer

    def _carried_out(self, call: Json, planned: Json) -> Json:
        """The results of one call. What was not reached is planned again, and so is everything
        where somebody else changes the same jobs meanwhile, such as an apply that was killed here:
        it is carried out as long as that is a part of what was planned at first."""
        wanted = {_key(item): _change(item) for item in planned["items"]}
        done: dict[tuple[str, str], Json] = {}
        answer, idle = planned, 0
        while True:
            tried = self._tried({**call, "expect": answer["digest"]})
            answer = tried or answer
            before = len(done)
            for item in answer["items"]:
                is_settled = answer["written"] and item["action"] != "unavailable"
                if is_settled:
                    done.setdefault(_key(item), item)
            idle = 0 if len(done) > before else idle + 1
            is_complete = answer["complete"] and answer["written"]
            if is_complete or idle == _TRIES:
                return _result(planned, answer, done, is_complete=is_complete)
            self.sleep(2.0**idle / 2)
            answer = self._planned(call)
            changed = (item for item in answer["items"] if item["action"] != "none")
            if any(wanted.get(_key(item)) != _change(item) for item in changed):
                if not done:
                    raise CliError.local(ExitCode.CONFLICT, *_ANOTHER_PLAN)
                return _result(planned, answer, done, is_complete=False)

    def _tried(self, call: Json) -> Json | None:
        """The results of a call; None where the plan is not the expected one any more."""
        try:
            return self._sent(call)
        except CliError as error:
            if not str(error.problem.get("type", "")).endswith(_PLAN_CHANGED):
                raise
            return None

    def _tell(self, verb: str, answers: Sequence[Json]) -> None:
        reached = sum(len(answer["items"]) for answer in answers)
        total = len(self.manifest.jobs) + len(self.manifest.calendars)
        total = max(total, reached)
        self.show(f"{verb} {reached:,} of {total:,}", reached, total)

    def _sent(self, call: Json) -> Json:
        return self.api.post(_PATH, {"manifest": self.manifest.name, **self.options, **call})


def _key(item: Json) -> tuple[str, str]:
    return str(item["kind"]), str(item["name"])


def _change(item: Json) -> tuple[object, object]:
    return item["action"], item["changes"]


def _result(
    planned: Json, answer: Json, done: Mapping[tuple[str, str], Json], *, is_complete: bool
) -> Json:
    """The answer with what was done, of which it says nothing where that were deletions; what is
    still to be done was not reached."""
    last = {_key(item): item for item in answer["items"]}
    items = list[Json]()
    for key in dict.fromkeys([*map(_key, planned["items"]), *last]):
        if found := done.get(key) or last.get(key):
            is_left = key not in done and found["action"] not in ("none", *_BLOCKING)
            items.append({**found, "action": "unavailable"} if is_left else found)
    return {**answer, "items": items, "complete": is_complete}


def calls_of(manifest: Manifest, *, prune: bool) -> Iterator[Json]:
    """The bodies of the calls, in order, each within the limits of one request; pruning last. A
    calendar goes with each call whose jobs follow it.

    Raises CliError for more jobs than a prune can keep.
    """
    left = dict(manifest.calendars)
    for jobs in _chunks(manifest.jobs, manifest.calendars):
        calendars = _followed(jobs, manifest.calendars)
        for name in calendars:
            left.pop(name, None)
        yield {"jobs": jobs, "calendars": calendars}
    for rest in _chunks(left, {}):
        yield {"calendars": rest}
    if prune:
        # A job that is renamed is still there while this is planned.
        former = [job["was"] for job in manifest.jobs.values() if isinstance(job.get("was"), str)]
        keep = [*manifest.jobs, *former]
        if len(keep) > MOST_KEPT:
            message = f"takes manifests of at most {MOST_KEPT:,} jobs, not {len(keep):,}"
            raise CliError.bad_field("prune", message)
        yield {"keep": keep}


def _chunks(items: Mapping[str, Json], calendars: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """The items in groups that fit into one request with the calendars they follow; jobs that run
    after another one are in its group."""
    chunk: dict[str, Json] = {}
    size, followed = 0, set[str]()
    for group in groups_of(items):
        uses = {_calendar_of(item) for item in group.values()}.intersection(calendars)
        length = sum(_length(name, item) for name, item in group.items())
        extra = sum(_length(name, calendars[name]) for name in uses - followed)
        is_over = len(chunk) + len(group) > MOST_JOBS or size + length + extra > MOST_BYTES
        if chunk and is_over:
            yield chunk
            chunk, size, followed = {}, 0, set()
            extra = sum(_length(name, calendars[name]) for name in uses)
        chunk.update(group)
        size += length + extra
        followed |= uses
    if chunk:
        yield chunk


def _length(name: str, item: Json) -> int:
    return len(json.dumps([name, item])) + 1


def _followed(jobs: Mapping[str, Json], calendars: Mapping[str, Json]) -> dict[str, Json]:
    names = {_calendar_of(job) for job in jobs.values()}
    return {name: calendars[name] for name in sorted(names & {*calendars})}


def _calendar_of(job: Json) -> str:
    """The name of the calendar that a job follows; "" where it follows none."""
    use = job.get("calendar")
    name = use.get("name") if isinstance(use, dict) else None
    return name if isinstance(name, str) else ""


def _plan(answers: Sequence[Json]) -> Plan:
    """Each item once: a calendar is sent with each call whose jobs follow it."""
    items: dict[tuple[str, str, bool], Json] = {}
    for answer in answers:
        for item in answer["items"]:
            key = (item["kind"], item["name"], item["action"] == "delete")
            items.setdefault(key, item)
    return Plan(list(items.values()), [answer["digest"] for answer in answers])


def refuse_nameless(manifest: Manifest) -> None:
    """Raises CliError for a manifest that does not say who manages its jobs."""
    if not manifest.name:
        message = "is required: the name of the manifest, which manages its jobs"
        raise CliError.bad_field("manifest", message)
