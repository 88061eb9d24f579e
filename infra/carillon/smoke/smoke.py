"""Creates the probes' jobs side by side, polls until each is judged, and removes them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from carillon.cli.client import ApiClient, job_path
from carillon.clock import Clock
from carillon.smoke.judging import Json, Judgement, lag_text, lags
from carillon.smoke.probes import Probe, job_of

_POLL_SECONDS = 2.0
_MOST_RUNS = 1_000


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one probe."""

    check: str
    holds: bool
    text: str


class Smoke:
    """One drive of a deployment. All its jobs have one `parent`, by which they are removed."""

    def __init__(self, api: ApiClient, clock: Clock, parent: str) -> None:
        self._api = api
        self._clock = clock
        self._parent = parent
        self._lags: list[float] = []

    def run(self, probes: Sequence[Probe]) -> Iterator[Result]:
        """Each result as soon as it is known; raises CliError where the API refuses or is away."""
        waiting = {probe.name: (probe, self._create(probe)) for probe in probes}
        begun = self._clock.now()
        yield from self._by_hand()
        while waiting:
            for name, (probe, job_id) in list(waiting.items()):
                result = self._look(probe, job_id, begun)
                if result is not None:
                    del waiting[name]
                    yield result
            self._clock.sleep(_POLL_SECONDS if waiting else 0)
        self._lags.sort()
        yield Result("all starts", bool(self._lags), lag_text(self._lags) if self._lags else "none")

    def clean_up(self) -> Result:
        """Remove the jobs and take their dead letters off the list."""
        made, listed = self._jobs(), self._api.items("/dead-letters", None)
        letters = [letter["run_id"] for letter in listed if letter["job_id"] in made]
        for run_id in letters:
            self._api.delete(f"/dead-letters/{run_id}")
        count = self._api.change_all("DELETE", "/jobs", {"parent": self._parent})["changed"]
        left = len(self._jobs())
        text = f"{count} jobs and {len(letters)} dead letters removed"
        return Result("clean-up", left == 0, text + (f", {left} jobs left" if left else ""))

    def _create(self, probe: Probe) -> str:
        body = job_of(probe, self._clock.now(), self._parent)
        return str(self._api.post_once("/jobs", body, f"{self._parent}-{probe.name}")["job_id"])

    def _look(self, probe: Probe, job_id: str, begun: datetime) -> Result | None:
        runs = list(self._api.items(job_path(job_id, "/runs"), _MOST_RUNS))[::-1]
        judgement = probe.judge(runs)
        if judgement is None and self._clock.now() - begun < probe.within:
            return None
        if judgement is None:
            told = ", ".join(f"{run['kind']} {run['status']}" for run in runs[-3:]) or "no run"
            seconds = probe.within.total_seconds()
            return Result(probe.name, holds=False, text=f"not within {seconds:.0f} s: {told}")
        self._lags += lags(runs)
        return Result(probe.name, judgement.holds, judgement.text)

    def _by_hand(self) -> Iterator[Result]:
        """A manual run, read back by its id."""
        body = {"schedule": "0 0 1 1 *", "target": {"type": "task", "name": "echo"}}
        job_id = self._create(Probe("by hand", body, lambda runs: None))
        run_id = str(self._api.post_once(job_path(job_id, "/run"), None, None)["run_id"])
        path = job_path(job_id, f"/runs/{run_id}")

        def judged() -> Judgement | None:
            run: Json = self._api.get(path)
            if run["status"] in ("scheduled", "running"):
                return None
            listed = [each["run_id"] for each in self._api.items(job_path(job_id, "/runs"), 5)]
            holds = run["status"] == "succeeded" and listed == [run_id]
            return Judgement(holds, f"{run['status']}, {len(run['attempts'])} attempt read back")

        judgement = self._await(judged)
        told = judgement or Judgement(holds=False, text="it has not ended within 30 s")
        yield Result("run by hand", told.holds, told.text)

    def _await(self, judged: Callable[[], Judgement | None]) -> Judgement | None:
        for _ in range(30):
            judgement = judged()
            if judgement is not None:
                return judgement
            self._clock.sleep(1)
        return None

    def _jobs(self) -> set[str]:
        found = self._api.items("/jobs", None, {"parent": self._parent})
        return {str(job["job_id"]) for job in found}
