"""A deployment in this process that has run for a day: the functions' own code in virtual time,
which then keeps pace with the clock on the wall, behind an API that speaks HTTP.

Pages look here as they look after a day on AWS, within seconds.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics

from carillon.api.app import Api
from carillon.clock import SystemClock
from carillon.domain.notifying.notification import Deliverable
from carillon.domain.run import RunError
from carillon.executor.targets import Call, Failure, Success
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.faults import Chaos, Draws, Faults
from carillon.simulation.loop import Loop
from carillon.simulation.services import settings_of
from carillon.simulation.targets import Behaviour, SimulatedTargets
from carillon.stores.ports import Stores
from carillon.stores.recording import ChangeEvents, GenerationRecords, RecordedJobs
from carillon.stores.task_logs import Lines
from carillon.telemetry import Action, Telemetry
from tests.unit.api.gateway import OWNER, answer_of, event

SEED = 7
LATENCY_US = 2_000
DAY = timedelta(hours=25)
NAMES = [each.name for each in fields(Stores)]
WEBHOOK = "https://billing.example.com/hooks/"


def _behave(target: Deliverable, call: Call, draws: Draws) -> Behaviour:
    """Webhooks fail now and then, and `import` for good since a few hours; others succeed."""
    name = str(getattr(target, "url", getattr(target, "name", "")))
    seconds = 0.08 + 1.4 * draws.fraction() ** 3
    if name.endswith("/crm"):
        return Behaviour(seconds, Failure(RunError("http_503", "503 Service Unavailable")))
    if name.endswith("/invoices") and draws.fraction() < 0.12:
        return Behaviour(seconds, Failure(RunError("http_502", "502 Bad Gateway")))
    return Behaviour(seconds, Success(json.dumps({"rows": int(900 * draws.fraction())})))


def jobs() -> Iterator[dict[str, Any]]:
    """Jobs as a small company has them."""

    def job(name: str, schedule: object, target: str, team: str, **others: Any) -> dict[str, Any]:
        to = {"type": "task", "name": target}
        if target.startswith("/"):
            to = {"type": "webhook", "url": WEBHOOK + target[1:]}
        return {"name": name, "schedule": schedule, "target": to, "tags": {"team": team}, **others}

    berlin: dict[str, Any] = {"timezone": "Europe/Berlin"}
    yield job("charge renewals", "every 10m", "/invoices", "billing", retry={"max_attempts": 2})
    yield job("close the day", "0 22 * * mon-fri", "close_day", "billing", **berlin)
    yield job("dunning letters", "30 9 * * tue,thu", "/invoices", "billing", **berlin)
    yield job("heartbeat of the shop", "every 1m", "echo", "platform", priority="high")
    yield job("import products", "every 15m", "import_products", "catalogue", overlap="skip")
    yield job("monthly statement", "0 6 1 * *", "/statements", "billing", **berlin)
    yield job("nightly backup", "30 2 * * *", "backup", "platform", expect_within="1h", **berlin)
    yield job("reindex search", "every 2h", "reindex", "catalogue", parent="search")
    yield job("sync CRM contacts", "every 30m", "/crm", "sales", retry={"max_attempts": 3})
    yield job("warm the cache", "*/5 8-18 * * mon-fri", "echo", "platform", window="2m")
    yield job(
        "weekly report", "0 6 * * mon", "report", "sales", description="To the board", **berlin
    )


class Talkative:
    """Logs in which every run of a task has said something."""

    def find(
        self, text: str, from_at: datetime, until_at: datetime, limit: int, position: str = ""
    ) -> Lines:
        said = [
            ("INFO", "read 1,204 rows"),
            ("WARNING", "the index is slow to answer: 0.8 s"),
            ("INFO", "done"),
        ]
        began_at = from_at + timedelta(seconds=5)
        record = {"run_id": text, "action": Action.TASK_LOG, "attempt": 1}
        lines = (json.dumps({**record, "level": level, "message": words}) for level, words in said)
        return Lines([(began_at + timedelta(milliseconds=90 * n), x) for n, x in enumerate(lines)])


class Rehearsed:
    """The deployment, and its API as a function from events to answers."""

    def __init__(self) -> None:
        began_at = (datetime.now(UTC) - DAY).replace(second=0, microsecond=0)
        loop = Loop(began_at, Chaos(SEED, Faults(), LATENCY_US), interleaves=True)
        self._loop = loop
        self._deployment = Deployment(loop, Options(segments=1), SimulatedTargets(loop, _behave))
        self._deployment.start()
        self._live = self._api(SystemClock())
        past = self._api(self._deployment.clock)
        for each in jobs():
            made = _ask(past, "POST", "/jobs", each)
            assert made.status == 201, made.text
        self.keep_up()

    def keep_up(self) -> None:
        """Let happen what was to happen until now."""
        self._loop.run(self._loop.us_of(datetime.now(UTC)))
        assert not self._deployment.crashes, self._deployment.crashes

    def answer(self, made: dict[str, Any]) -> Any:
        self.keep_up()
        return answer_of(self._live, made)

    def _api(self, clock: Any) -> Api:
        stores = self._deployment.stores
        truth: dict[str, Any] = {"queue": self._deployment.lanes, "skew_seconds": lambda: None}
        ports = {name: truth[name] if name in truth else getattr(stores, name) for name in NAMES}
        records = GenerationRecords(ports["chunks"], self._deployment.options.run_lifetime)
        changed = ports["changes"], ChangeEvents(ports["events"])
        ports["jobs"] = RecordedJobs(ports["jobs"], *changed, records)
        service = f"rehearsed-{id(clock)}"
        telemetry = Telemetry(
            Logger(service=service, stream=StringIO()), Metrics(namespace="C", service=service)
        )
        settings = replace(
            settings_of(self._deployment.options),
            owner_requests_per_second=0,
            operators_group="ops",
        )
        return Api(
            stores=Stores(**ports),
            clock=clock,
            entropy=self._deployment.entropy,
            settings=settings,
            telemetry=telemetry,
            task_logs=Talkative(),
        )


_CLAIMS = {"sub": OWNER.removeprefix("user/"), "username": "ada", "cognito:groups": "[ops]"}


def _ask(api: Api, method: str, path: str, body: object) -> Any:
    return answer_of(api, event(method, path, body=json.dumps(body), claims=_CLAIMS))


@contextmanager
def served() -> Iterator[str]:
    """The address of its API over HTTP, whose every request is the same person's; all in one
    thread, as the simulation wants it."""
    worlds: list[Rehearsed] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            target = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            made = event(
                self.command,
                target.path,
                body=None if body is None else body.decode(),
                query=dict(parse_qsl(target.query)),
                headers=dict(self.headers.items()),
                claims=_CLAIMS,
            )
            answer = worlds[0].answer(made)
            content = answer.text.encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)

    def serve() -> None:
        worlds.append(Rehearsed())
        server.serve_forever()

    Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
