"""The target of the chaos run: a webhook endpoint that remembers every call, apart from Carillon.

How it answers follows from the seed, the run and the attempt. It can also be told to have its next
caller killed: before it answers, or as soon as it has.
"""

import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Lock, Thread
from time import sleep

from tests.e2e.chaos.workers import Worker, Workers

OUT_OF_ORDER = 0.10
SLOW = 0.12
SILENT = 0.03
SLOW_SECONDS = (0.1, 0.7)
SILENT_SECONDS = 1.5
"""Longer than the time limit of every attempt."""


class Ambush(StrEnum):
    """When the next caller is killed."""

    BEFORE_THE_ANSWER = "webhook under way"
    AFTER_THE_ANSWER = "webhook answered"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One call; `answered_at` stays None when its caller was gone before it had the answer."""

    number: int
    run_id: str
    attempt: int
    fire_at: datetime
    came_at: datetime
    status: int
    answered_at: datetime | None = None


class Witness:
    """The endpoint, as a context manager; it kills some of its callers among `workers`."""

    def __init__(self, seed: int, workers: Workers) -> None:
        self._seed = seed
        self._workers = workers
        self._lock = Lock()
        self._ambushes: dict[frozenset[str], Ambush] = {}
        """For any caller, or for one that makes a first attempt on behalf of these job ids."""
        self._arrivals: list[Arrival] = []
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    @property
    def arrivals(self) -> list[Arrival]:
        """All calls so far, in the order in which they came."""
        with self._lock:
            return list(self._arrivals)

    def __enter__(self) -> "Witness":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def arm(self, ambush: Ambush, prey: frozenset[str] = frozenset()) -> None:
        """Have the next caller killed; apart from that the next one for these job ids that makes a
        first attempt: others are made alone, and a chunk has mostly first ones."""
        with self._lock:
            self._ambushes[prey] = ambush

    def disarm(self) -> None:
        with self._lock:
            self._ambushes.clear()

    def take(
        self, run_id: str, attempt: int, fire_at: datetime, port: int
    ) -> tuple[Arrival, Worker | None]:
        """Remember a call from a local port, and how it is to be answered; the caller, if that is
        to die at the answer."""
        came_at = datetime.now(UTC)
        status, pause_seconds = self._answer(run_id, attempt)
        with self._lock:
            number = len(self._arrivals)
            arrival = Arrival(number, run_id, attempt, fire_at, came_at, status)
            self._arrivals.append(arrival)
            ambush = self._sprung(run_id.partition("_")[0], attempt)
        # Found while it waits: it closes the connection as soon as it has the answer.
        caller = None if ambush is None else self._workers.at_port(port)
        if caller is not None and ambush is Ambush.BEFORE_THE_ANSWER:
            sleep(pause_seconds / 2)
            self._workers.kill(caller, ambush.value)
            caller = None
        sleep(pause_seconds)
        return arrival, caller

    def _sprung(self, job_id: str, attempt: int) -> Ambush | None:
        met = (prey for prey in self._ambushes if not prey or (attempt == 1 and job_id in prey))
        sprung = next(met, None)
        return None if sprung is None else self._ambushes.pop(sprung)

    def answered(self, arrival: Arrival, dies: Worker | None) -> None:
        """The answer has been written; the caller dies if it was to."""
        with self._lock:
            self._arrivals[arrival.number] = replace(arrival, answered_at=datetime.now(UTC))
        if dies is not None:
            self._workers.kill(dies, Ambush.AFTER_THE_ANSWER.value)

    def _answer(self, run_id: str, attempt: int) -> tuple[int, float]:
        """Status and the seconds before it."""
        chance = Random(f"{self._seed} {run_id} {attempt}")
        drawn = chance.random()
        if drawn < OUT_OF_ORDER:
            return 503, 0.0
        if drawn < OUT_OF_ORDER + SLOW:
            return 200, chance.uniform(*SLOW_SECONDS)
        if drawn < OUT_OF_ORDER + SLOW + SILENT:
            return 200, SILENT_SECONDS
        return 200, 0.0


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], witness: Witness) -> None:
        super().__init__(address, _Handler)
        self.witness = witness

    def handle_error(self, request: object, client_address: object) -> None:
        """Callers that are gone are what this is about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10.0

    def do_POST(self) -> None:
        """Take one webhook."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        port = int(self.client_address[1])
        arrival, dies = self.server.witness.take(
            str(self.headers["webhook-id"]),
            int(self.headers["carillon-attempt"]),
            datetime.fromisoformat(str(self.headers["carillon-fire-at"])),
            port,
        )
        with contextlib.suppress(OSError):
            self.send_response(arrival.status)
            self.send_header("content-length", "0")
            self.end_headers()
            self.server.witness.answered(arrival, dies)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""
