"""The world of one test: a deployment, its clock, and the targets of its jobs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from carillon.api.apply.models import ApplyBody
from carillon.api.apply.plan import BLOCKING, Applied, Item
from carillon.api.apply.stack import parts_of
from carillon.api.http.problems import problem_of
from carillon.api.http.requests import Precondition
from carillon.api.jobs.response_models import JobForm
from carillon.api.runs.routes import RunBody, RunDetail
from carillon.api.schedules.outlook import outlook_of
from carillon.domain.job import Job
from carillon.domain.run import Run
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import Author, AuthorKind, Via
from carillon.manifest.manifest import Manifest, ManifestFile, ManifestRefusedError
from carillon.services.calendar_reader import CalendarReader
from carillon.services.history import History
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.faults import Faults
from carillon.simulation.run import loop_of
from carillon.simulation.services import Api, settings_of
from carillon.simulation.targets import SimulatedTargets
from carillon.testing.endpoints import Endpoints
from carillon.testing.refusals import RefusedError, asked, refuse_unsendable, told
from carillon.testing.times import Span, When, instant_of, span_of
from carillon.testing.user_code import UserCode
from carillon.testing.webhooks import WebhookFunction

OWNER = "user/tester"
_AUTHOR = Author(AuthorKind.PERSON, "tester", "tester", Via.API)
_ALL = 1_000_000
_PARTS = ("ticks", "executors")


@dataclass(frozen=True, slots=True)
class WorldOptions:
    """The options of the marker. `start` is when the test begins; times without an offset are local
    ones of `zone`. `faults` are probabilities by fault, drawn by `seed`. A call of users' code may
    take `real_seconds` of real time."""

    start: When = datetime(2027, 1, 1, tzinfo=UTC)
    zone: str = "UTC"
    seed: int = 0
    faults: Mapping[str, float] = field(default_factory=dict)
    executor_timeout_seconds: int = 60
    real_seconds: float = 10.0


def options_of(marked: Mapping[str, Any]) -> WorldOptions:
    """The options that a marker states; raises RefusedError for unknown ones."""
    known = [each.name for each in fields(WorldOptions)]
    for name in marked:
        if name not in known:
            raise RefusedError(f"the marker carillon: {name!r} is none of {', '.join(known)}")
    return WorldOptions(**marked)


class World:
    """One deployment in virtual time. Nothing happens but in `run_until` and `run_for`.

    Jobs are named by their names, and belong to one owner. Whatever is wrong with what the test
    asks for raises RefusedError.
    """

    def __init__(self, folder: Path, options: WorldOptions) -> None:
        self._folder = folder
        self._zone = options.zone
        read = partial(instant_of, options.start, options.zone, datetime.now(UTC), "start")
        start = asked("the marker carillon", read)
        texts = (f"{fault}={value}" for fault, value in options.faults.items())
        faults = asked("the marker carillon", partial(Faults.parse, ",".join(texts)))
        self._loop = loop_of(start, options.seed, faults)
        self._code = UserCode(self._loop, options.real_seconds)
        self._endpoints = Endpoints(self._loop, self._code)
        self._deployment = Deployment(
            self._loop,
            Options(
                segments=1,
                function_timeout_seconds=options.executor_timeout_seconds,
                page_size=1000,
                records=True,
            ),
            SimulatedTargets(self._loop, self._endpoints.behave),
            skips_idle_ticks=True,
        )
        self._api = Api.of(self._deployment)
        self._history = History(self._deployment.stores.runs)
        self._deployment.start()
        self._loop.run(self._loop.us_of(start))

    @property
    def now(self) -> datetime:
        """The virtual time, in UTC."""
        return self._loop.instant()

    def apply(self, manifest: str | Path | Mapping[str, Any]) -> None:
        """Make jobs and calendars what a manifest says: a file, relative to pytest's rootdir, or
        its content as a dict. `simulate` in it is not read."""
        read = self._read(manifest)
        for kind, named in (("jobs", read.jobs), ("calendars", read.calendars)):
            for name, members in named.items():
                refuse_unsendable("apply", members, f"{kind}.{name}.")
        bodies = asked("apply", partial(_bodies, read))
        # One body is planned as a whole before it is written; of several the last may be refused.
        for dry_run in (True, False) if len(bodies) > 1 else (False,):
            for body in bodies:
                self._apply(read, body.model_copy(update={"dry_run": dry_run}))

    def _apply(self, read: Manifest, body: ApplyBody) -> None:
        author, manager = _AUTHOR.by(Via.APPLY), f"manifest/{body.manifest}"
        apply = partial(self._api.applying.apply, OWNER, author, manager, body, _quiet)
        applied: Applied = asked("apply", apply)
        if any(item.action in BLOCKING for item in applied.items):
            raise RefusedError(told("apply", [*_faults(read, applied.items)]))

    def put(self, name: str, **settings: Any) -> JobForm:
        """Make a job what the settings say, all others at their defaults."""
        refuse_unsendable(f"put({name!r})", settings)
        spec = asked(f"put({name!r})", partial(JobSpec.model_validate, {"name": name, **settings}))
        put = partial(self._api.jobs.put, OWNER, spec, Precondition(), _AUTHOR, force=True)
        asked(f"put({name!r})", put)
        return self.job(name)

    def job(self, name: str) -> JobForm:
        """A job as the API answers it: its settings, `state`, `next_fire_at`, ..."""
        job = self._named("job", name)
        reader = CalendarReader(self._deployment.stores.calendars)
        longest = settings_of(self._deployment.options).longest_timeout_seconds
        return JobForm.of(job, outlook_of(job, reader, self.now), longest)

    def pause(self, name: str) -> None:
        job_id = self._named("pause", name).job_id
        asked("pause", partial(self._api.jobs.pause, OWNER, job_id, _AUTHOR))

    def resume(self, name: str) -> None:
        job_id = self._named("resume", name).job_id
        asked("resume", partial(self._api.jobs.resume, OWNER, job_id, _AUTHOR))

    def delete(self, name: str) -> None:
        job_id = self._named("delete", name).job_id
        asked("delete", partial(self._api.jobs.delete, OWNER, job_id, None, _AUTHOR, force=True))

    def run(self, name: str, **body: Any) -> RunDetail:
        """Ask for a run by hand, with a `payload` in place of the job's and a `note`, if they are
        given; it starts when time passes."""
        refuse_unsendable("run", body)
        job_id = self._named("run", name).job_id
        said = asked("run", partial(RunBody.model_validate, body))
        request = partial(self._api.runs.request, OWNER, job_id, None)
        run: Run = asked("run", partial(request, said.own_payload, said.note or ""))
        return self._detail(run)

    def runs(self, name: str) -> list[RunDetail]:
        """All runs of a job, of whatever kind, by fire time; also of one that is deleted."""
        job_id = job_id_of(OWNER, name)
        if self._api.jobs.find(OWNER, job_id) is None:
            raise self._unknown("runs", name)
        page = self._history.page(OWNER, job_id, _ALL)
        return [self._detail(run) for run in reversed(page.items)]

    def dead_letters(self) -> list[RunDetail]:
        """Those of all jobs, by fire time."""
        page = self._history.dead_letters(OWNER, _ALL)
        return [self._detail(run) for run in reversed(page.items)]

    def _detail(self, run: Run) -> RunDetail:
        return RunDetail.of(self._history.whole(run), self._api.runs.asked(run.key))

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lifecycle events that jobs chose by `events`, as CloudEvents."""
        return [event.as_cloud_event() for event in self._deployment.stores.events.emitted]

    def on_webhook(self, url: str, function: WebhookFunction) -> None:
        """Let a function answer the calls of this URL; a URL without one answers 200. Whatever the
        function raises ends the test."""
        self._endpoints.functions[url] = function

    def fail(self, name: str, *, times: int = 1, error: str | Exception = "failed") -> None:
        """Let the next `times` calls of a job's target fail; the target is not called then.

        `error` is a kind (`"timeout"`, `"http_503"`, any other), or an exception as a task raises
        it.
        """
        job_id = self._named("fail", name).job_id
        if times < 1:
            raise RefusedError(f"fail: times must be at least 1, not {times}")
        if not isinstance(error, str | Exception):
            raise RefusedError(f"fail: error must be a kind or an exception, not {error!r}")
        self._endpoints.fail(job_id, times, error)

    def outage(self, part: str, begin: When, length: Span, *, zone: str = "") -> None:
        """Let nothing invoke the `ticks`, or the `executors`, for a time."""
        if part not in _PARTS:
            raise RefusedError(f"outage: {part!r} is none of {', '.join(_PARTS)}")
        begun_at = self._instant("outage", begin, zone)
        span = (begun_at, begun_at + asked("outage", partial(span_of, length, "length")))
        if part == "ticks":
            self._deployment.ticks_down = (*self._deployment.ticks_down, span)
        else:
            self._deployment.executors_down = (*self._deployment.executors_down, span)

    def run_until(self, until: When, *, zone: str = "") -> None:
        """Let time pass until an instant, whose own events are the last to happen."""
        self._advance(self._instant("run_until", until, zone))

    def run_for(self, span: Span) -> None:
        """Let so much time pass: a timedelta, or text such as `PT90M`, `36h`, `31d`."""
        self._advance(self.now + asked("run_for", partial(span_of, span, "span")))

    def close(self) -> None:
        self._loop.close()

    def _advance(self, until: datetime) -> None:
        # A second journey within the first one would leave the process in virtual time.
        if self._loop.current is not None:
            raise RefusedError("time passes already: what a target calls waits by time.sleep")
        with self._code.virtual_time():
            self._loop.run(self._loop.us_of(until))
        for where, error in self._deployment.crashes:
            raise RuntimeError(f"Carillon's own code failed, in {where}: report it") from error

    def _instant(self, what: str, when: When, zone: str) -> datetime:
        """An instant that is not past."""
        read = partial(instant_of, when, zone or self._zone, self.now, "the time")
        instant = asked(what, read)
        if instant < self.now:
            raise RefusedError(f"{what}: {when} is past: it is {self.now:%Y-%m-%dT%H:%M:%SZ}")
        return instant

    def _read(self, manifest: str | Path | Mapping[str, Any]) -> Manifest:
        try:
            if isinstance(manifest, Mapping):
                return Manifest.of(dict(manifest))
            path = self._folder / manifest
            file = ManifestFile(str(manifest), path.read_text(encoding="utf-8"))
            return asked("apply", partial(Manifest.of_files, [file]))
        except ManifestRefusedError as error:
            found = [(".".join(path), message) for path, message in error.errors]
            raise RefusedError(told("apply", found)) from None
        except (OSError, UnicodeError) as error:
            where = f"{manifest} in {self._folder}"
            raise RefusedError(f"apply: {where} cannot be read: {error}") from None

    def _named(self, what: str, name: str) -> Job:
        job = self._api.jobs.find(OWNER, job_id_of(OWNER, name))
        if job is None or job.is_tombstone:
            raise self._unknown(what, name)
        return job

    def _unknown(self, what: str, name: str) -> RefusedError:
        pages = self._api.jobs.first_pages(OWNER)
        names = ", ".join(job.spec.name for page in pages for job in page.items)
        return RefusedError(f"{what}: no job is called {name!r}; jobs: {names or 'none'}")


def _quiet(item: Item) -> None:
    """Nobody is told of each item."""


def _bodies(read: Manifest) -> list[ApplyBody]:
    """The calls that the command would send; raises pydantic.ValidationError."""
    calendars = {name: dict(members) for name, members in read.calendars.items()}
    return [
        ApplyBody(manifest=read.name or "test", jobs=jobs, calendars=calendars)
        for jobs in list(parts_of(read.jobs)) or [{}]
    ]


def _faults(manifest: Manifest, items: Sequence[Item]) -> Iterator[tuple[str, str]]:
    for item in items:
        if item.problem is None:
            continue
        problem, path = problem_of(item.problem), (f"{item.kind.value}s", item.name)
        for name, message in problem.errors or [("", problem.detail)]:
            members = (*path, name) if name else path
            yield ".".join(members), manifest.located(members, message)
