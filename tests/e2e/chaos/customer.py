"""Who uses the API while everything breaks, and keeps every acknowledgement.

A call whose answer is lost is repeated, the same call under the same idempotency key, until there
is an answer: only that is an acknowledgement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from threading import Event
from time import monotonic, sleep

import httpx2

from carillon.domain.spec.names import job_id_of
from tests.e2e.chaos.fleet import Json, fleet, once, utc, webhook_job

PATIENCE_SECONDS = 240
"""Until a call must have an answer, an outage and cold starts on a busy machine included."""
LOST_FROM = 500
TIMEOUT_SECONDS = 30
"""Longer than the API's function may take: a call that was given up does nothing later."""
RESTS_SECONDS = 9.0
"""How long a paused job rests: longer than an executor may have read its row before."""
_ADOPTED = 8
"""Of the jobs that go in chunks: a job that was resumed goes alone for an hour."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A definite answer. `tries` counts the calls it took; `run_id` is what a run by hand, or a
    redrive, was told to be."""

    call: str
    job_id: str
    requested_at: datetime
    acknowledged_at: datetime
    status: int
    tries: int
    run_id: str = ""

    @property
    def was_done(self) -> bool:
        """Whether it says that what was wanted is so; a second deletion finds no job."""
        gone = self.call == "delete" and self.status == 404 and self.tries > 1
        return 200 <= self.status < 300 or gone


class Customer:
    """One owner with a token; used by one thread. `is_up` is set while calls make sense."""

    def __init__(self, http: httpx2.Client, owner: str, seed: int, is_up: Event) -> None:
        self._http = http
        self._owner = owner
        self._seed = seed
        self._random = Random(f"{seed} customer")
        self._is_up = is_up
        self._keys = 0
        self._resting: dict[str, float] = {}
        self._usual: list[str] = []
        self._passing: list[str] = []
        self.acknowledgements: list[Acknowledgement] = []
        self.job_ids: list[str] = []
        self.calling = Event()
        """Set while a call is under way: a good moment to kill who answers it."""

    def found(self, url: str, begins_at: datetime, ends_at: datetime) -> None:
        """Create the fleet."""
        bodies = fleet(url, begins_at, ends_at)
        self._usual = [job_id for body in bodies if (job_id := self._create(body))]

    def adopt(self, job_ids: Sequence[str]) -> None:
        """Take over jobs that somebody else has made; some of them are paused and run, too."""
        self.job_ids += job_ids
        self._usual += job_ids[:_ADOPTED]

    def use(self, url: str, ends_at: datetime) -> None:
        """Call this and that until it is over; then resume what rests."""
        while datetime.now(UTC) < ends_at:
            self._resume_rested(at_once=False)
            choices = (self._create_once, self._create_passing, self._pause, self._delete)
            more = (self._redrive, self._run_by_hand)
            self._random.choices((*choices, *more), weights=(3, 2, 2, 1, 3, 2))[0](url)
            sleep(self._random.uniform(0.2, 1.5))
        self._resume_rested(at_once=True)

    def _create_once(self, url: str) -> None:
        seconds = self._random.randint(3, 12)
        fire_at = datetime.now(UTC) + timedelta(seconds=seconds)
        priority = self._random.choice(("high", "normal", "low"))
        self._create(webhook_job("passing-once", once(fire_at), url, priority=priority))

    def _create_passing(self, url: str) -> None:
        now = datetime.now(UTC)
        end_at = utc(now + timedelta(seconds=30))
        schedule = f"every {self._random.randint(2, 5)}s"
        job_id = self._create(webhook_job("passing", schedule, url, end_at=end_at))
        if job_id:
            self._passing.append(job_id)

    def _create(self, body: Json) -> str:
        """Create a job; its id, "" if it was refused."""
        self._keys += 1
        key = f"chaos-{self._seed}-{self._keys}"
        body["name"] = f"{body['name']} {self._keys}"
        job_id = job_id_of(self._owner, body["name"])
        self.job_ids.append(job_id)
        answer = self._ask("create", job_id, "POST", "/jobs", body, {"Idempotency-Key": key})
        return job_id if answer.was_done else ""

    def _pause(self, url: str) -> None:
        job_id = self._random.choice(self._usual)
        if job_id not in self._resting:
            self._ask("pause", job_id, "POST", f"/jobs/{job_id}/pause")
            self._resting[job_id] = monotonic() + RESTS_SECONDS

    def _resume_rested(self, *, at_once: bool) -> None:
        for job_id, until in list(self._resting.items()):
            if at_once or monotonic() >= until:
                del self._resting[job_id]
                self._ask("resume", job_id, "POST", f"/jobs/{job_id}/resume")

    def _delete(self, url: str) -> None:
        if self._passing:
            job_id = self._passing.pop(0)
            self._ask("delete", job_id, "DELETE", f"/jobs/{job_id}")

    def _redrive(self, url: str) -> None:
        letters = self._dead_letters()
        if letters:
            run_id = self._random.choice(letters)
            path = f"/dead-letters/{run_id}/redrive"
            self._ask("redrive", run_id.partition("_")[0], "POST", path)

    def _dead_letters(self) -> list[str]:
        """Nothing is lost if this answer is."""
        self._is_up.wait(PATIENCE_SECONDS)
        try:
            answer = self._http.get("/dead-letters", params={"limit": 50}, timeout=10)
        except httpx2.HTTPError:
            return []
        if answer.status_code != httpx2.codes.OK:
            return []
        return [str(letter["run_id"]) for letter in answer.json()["items"]]

    def _run_by_hand(self, url: str) -> None:
        job_id = self._random.choice(self._usual)
        self._keys += 1
        key = {"Idempotency-Key": f"hand-{self._seed}-{self._keys}"}
        self._ask("run", job_id, "POST", f"/jobs/{job_id}/run", headers=key)

    def _ask(
        self,
        call: str,
        job_id: str,
        method: str,
        path: str,
        body: Json | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Acknowledgement:
        """Repeat the call until it has an answer that says what is; keep that."""
        requested_at = datetime.now(UTC)
        give_up_at = monotonic() + PATIENCE_SECONDS
        tries = 0
        while True:
            tries += 1
            answer = self._call_once(method, path, body, headers)
            if answer is not None:
                break
            assert monotonic() < give_up_at, f"{method} {path}: no answer in {tries} calls"
            sleep(0.3)
        run_id = str(answer.json().get("run_id", "")) if answer.status_code == 202 else ""
        acknowledgement = Acknowledgement(
            call, job_id, requested_at, datetime.now(UTC), answer.status_code, tries, run_id
        )
        self.acknowledgements.append(acknowledgement)
        return acknowledgement

    def _call_once(
        self, method: str, path: str, body: Json | None, headers: Mapping[str, str] | None
    ) -> httpx2.Response | None:
        """The answer; None where it does not say what was done."""
        self._is_up.wait(PATIENCE_SECONDS)
        self.calling.set()
        try:
            answer = self._http.request(
                method, path, json=body, headers=headers, timeout=TIMEOUT_SECONDS
            )
        except httpx2.HTTPError:
            return None
        finally:
            self.calling.clear()
        is_contended = answer.status_code == 409 and "contended" in answer.text
        return None if answer.status_code >= LOST_FROM or is_contended else answer
