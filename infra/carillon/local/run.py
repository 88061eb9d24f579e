"""`make run`: the whole stack on this machine, with sample jobs, and their runs as they happen."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import secrets
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from carillon.cli.commands.admin.machines import machines_of
from carillon.cli.commands.admin.user_pool import UserPool
from carillon.cli.exits import CliError
from carillon.client.sign_in import Machine
from carillon.console.loopback import Loopback
from carillon.local.api_client import Api, WarmingFailed, warm
from carillon.local.deployment import (
    LOCAL_DIRECTORY,
    MACHINE,
    MACHINE_TEAM,
    STACK_NAME,
    Deployment,
    DeploymentFailed,
    create_user,
    deploy,
    find_deployment,
    sign_in,
    synthesize,
)
from carillon.local.emulator import RECEIVER_PORTS, Emulator, EmulatorFailed, port_of_state
from carillon.local.live_view import Follower, LagSummary, Watch
from carillon.local.receiver import Delivery, Receiver, read_signing_secret
from carillon.local.samples import sample_jobs

USER_NAME = "local-operator"
POLL_SECONDS = 2.0
SUMMARY_AFTER_SECONDS = 120.0


class AlreadyRunning(Exception):
    """Another local stack holds the state directory."""


@dataclass(frozen=True)
class Stack:
    """The parts of a running local stack."""

    state_directory: Path
    receiver: Receiver
    api: Api


def main(arguments: list[str] | None = None) -> int:
    """Run until interrupted, or for the time of `--for`; the exit code."""
    options = _parse(arguments)
    state_directory: Path = options.state_directory.resolve()
    # A shell starts what it puts into the background with SIGINT ignored, and Python leaves it so.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, _interrupt)
    try:
        with holding(state_directory):
            _run(state_directory, options.for_seconds)
    except KeyboardInterrupt:
        pass
    except (AlreadyRunning, CliError, DeploymentFailed, EmulatorFailed, WarmingFailed) as error:
        say(f"carillon: {_words_of(error)}\nMore in the logs of {_shortest(state_directory)}.")
        return 1
    say("Stopped. The state is kept; `make run` continues from here.")
    return 0


def _words_of(error: Exception) -> str:
    return error.text(as_json=False) if isinstance(error, CliError) else str(error)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m carillon.local run", description=__doc__)
    parser.add_argument(
        "--for",
        dest="for_seconds",
        type=float,
        metavar="SECONDS",
        help="stop by itself this long after everything is up",
    )
    parser.add_argument(
        "--state-directory",
        type=Path,
        default=LOCAL_DIRECTORY,
        help="where everything is kept (default: .local); delete it to begin anew",
    )
    return parser.parse_args(arguments)


def _interrupt(signal_number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def say(text: str) -> None:
    """Print lines at once: who reads them may be a pipe."""
    print(text, flush=True)


@contextlib.contextmanager
def holding(state_directory: Path) -> Iterator[None]:
    """Hold the directory for this process. Raises AlreadyRunning if another one does."""
    state_directory.mkdir(parents=True, exist_ok=True)
    with (state_directory / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunning(f"a local stack is running in {state_directory}") from error
        yield


def _run(state_directory: Path, for_seconds: float | None) -> None:
    emulator, deliveries = Emulator(state_directory), HeldLines()
    receiver = Receiver(
        lambda: read_signing_secret(find_deployment(emulator.endpoint_url)),
        port=port_of_state(state_directory, "receiver-port", RECEIVER_PORTS),
        on_delivery=deliveries.take,
    )
    # The receiver first: webhooks that are overdue since the last stop are delivered without delay.
    with receiver:
        say("Starting MiniStack …")
        with emulator:
            try:
                _serve(state_directory, emulator, receiver, deliveries, for_seconds)
            finally:
                # From here on nothing may come between the state and its saving.
                for signal_number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(signal_number, signal.SIG_IGN)
                with contextlib.suppress(BrokenPipeError):
                    say("Stopping …")


def _serve(
    state_directory: Path,
    emulator: Emulator,
    receiver: Receiver,
    deliveries: HeldLines,
    for_seconds: float | None,
) -> None:
    since = datetime.now(UTC)
    say(f"Deploying the CDK app to {emulator.endpoint_url} …")
    assembly = synthesize(emulator.endpoint_url, state_directory)
    deployment = deploy(emulator.endpoint_url, assembly)
    user = create_user(deployment, USER_NAME, operator=True, groups=[f"{MACHINE_TEAM}:admin"])
    login = {"username": user.name, "password": user.password}
    _write_private(state_directory / "login.json", json.dumps(login))
    with contextlib.closing(Api(deployment.api_url, lambda: sign_in(deployment, user))) as api:
        say("Warming up …")
        warm(deployment, api)
        warm_at = datetime.now(UTC)
        stack = Stack(state_directory, receiver, api)
        _register(stack)
        key = secrets.token_urlsafe(24)
        with Loopback(deployment.api_url, lambda: stack.api.token, key) as console:
            _print_addresses(stack, console.link, emulator.log_path, machine_of(deployment))
            deliveries.release()
            _follow(stack, Watch(since, warm_at), for_seconds)


_DONE = {"none": "as before", "change": "changed", "revive": "revived"}
"""What became of a sample that an earlier start had registered."""


def _register(stack: Stack) -> None:
    """Show the jobs that are there from earlier, and register the sample jobs."""
    found = list(stack.api.items("/jobs", None))
    if found:
        say("Found from last time: " + ", ".join(sorted(str(job["name"]) for job in found)))
    for sample in sample_jobs(datetime.now(UTC), stack.receiver.url):
        put = stack.api.put(f"/jobs/named/{sample['name']}", sample)
        before = "" if put["action"] == "create" else f"  {_DONE[put['action']]}"
        say(f"  {sample['name']:<13} {sample['schedule']:<31} {put['job']['job_id']}{before}")


def machine_of(deployment: Deployment) -> Machine:
    """The machine of the local stack."""
    cognito = deployment.client("cognito-idp")
    pool = UserPool(STACK_NAME, deployment.outputs, cognito)
    (client,) = machines_of(pool, MACHINE)
    return Machine(client["ClientId"], client["ClientSecret"])


def _print_addresses(stack: Stack, console: str, log_path: Path, machine: Machine) -> None:
    url, python = stack.api.api_url, Path(sys.executable)
    token_path = _write_token(stack)
    environment_path = stack.state_directory / "env"
    _write_private(environment_path, environment(url, token_path.resolve(), python))
    machine_path = stack.state_directory / f"{MACHINE}.env"
    _write_private(machine_path, machine_environment(url, machine, python))
    say(f"""
Console  {console}
API      {url}
Token    {token_path} (renewed while this runs)
Logs     {_shortest(log_path)} (all functions; of one run: carillon logs RUN)

In another terminal:

  source {shlex.quote(str(_shortest(environment_path)))}
  carillon jobs list
  curl -s -H "Authorization: Bearer $(cat "$CARILLON_TOKEN_FILE")" "$CARILLON_API_URL/jobs"

As the machine {MACHINE}, an editor of team {MACHINE_TEAM} (you are its admin):

  source {shlex.quote(str(_shortest(machine_path)))}
  carillon whoami

Runs as they happen (UTC), Ctrl-C stops:
""")


def environment(api_url: str, token_path: Path, python: Path) -> str:
    """The lines for a shell to source: this deployment's address, its token, and the commands."""
    return f"""\
# The local stack; the file of the token is renewed while `make run` runs.
unset CARILLON_TOKEN CARILLON_TEAM
export CARILLON_API_URL={shlex.quote(api_url)}
export CARILLON_TOKEN_FILE={shlex.quote(str(token_path))}
export PATH={shlex.quote(str(python.parent))}:"$PATH"
"""


def machine_environment(api_url: str, machine: Machine, python: Path) -> str:
    """The lines for a shell that is to be the machine, which acts for its team."""
    return f"""\
# The local stack, as a program that signs in by itself.
unset CARILLON_TOKEN CARILLON_TOKEN_FILE
export CARILLON_API_URL={shlex.quote(api_url)}
export CARILLON_CLIENT_ID={shlex.quote(machine.client_id)}
export CARILLON_CLIENT_SECRET={shlex.quote(machine.secret)}
export CARILLON_TEAM={MACHINE_TEAM}
export PATH={shlex.quote(str(python.parent))}:"$PATH"
"""


class HeldLines:
    """Webhooks that arrive while the stack starts, told once it is up, and from then on at once."""

    def __init__(self) -> None:
        self._held: list[str] | None = []
        self._lock = threading.Lock()

    def take(self, delivery: Delivery) -> None:
        """Tell it, now or later; called by the receiver's threads."""
        line = _told(delivery)
        with self._lock:
            if self._held is None:
                say(line)
            else:
                self._held.append(line)

    def release(self) -> None:
        """Tell what was held."""
        with self._lock:
            for line in self._held or ():
                say(line)
            self._held = None


def _write_token(stack: Stack) -> Path:
    path = stack.state_directory / "token"
    _write_private(path, stack.api.token)
    return _shortest(path)


def _write_private(path: Path, text: str) -> None:
    """At once: a command that reads the token meanwhile gets the old one or the new one, whole."""
    fresh = path.with_name(f"{path.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    fresh.replace(path)


def _shortest(path: Path) -> Path:
    with contextlib.suppress(ValueError):
        return path.relative_to(Path.cwd())
    return path


def _told(delivery: Delivery) -> str:
    verdict = "signature verified" if delivery.verified else "SIGNATURE NOT VERIFIED"
    return f"{delivery.received_at:%H:%M:%S}  receiver      got a webhook, {verdict}"


def _follow(stack: Stack, watch: Watch, for_seconds: float | None) -> None:
    """Print what happens until the time is up; the summary after two minutes, or at the end."""
    follower = Follower(stack.api)
    began = time.monotonic()
    summarized = False
    while True:
        passed = time.monotonic() - began
        is_over = for_seconds is not None and passed >= for_seconds
        with _reporting_failures():
            for run in watch.news(follower.look()):
                say(watch.line(run, datetime.now(UTC)))
            _write_token(stack)
        if not summarized and (is_over or passed >= SUMMARY_AFTER_SECONDS):
            summarized = True
            _print_summary(watch, stack.receiver)
        if is_over:
            return
        time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def _reporting_failures() -> Iterator[None]:
    """A call that fails once is worth a line, not the end."""
    try:
        yield
    except CliError as error:
        say(f"carillon: {_words_of(error)}")


def _print_summary(watch: Watch, receiver: Receiver) -> None:
    summary = LagSummary.of(watch.lags)
    deliveries = receiver.deliveries
    verified = sum(delivery.verified for delivery in deliveries)
    say(f"\n== {summary or 'no run was on time'}")
    say(f"== {verified} of {len(deliveries)} webhooks delivered with a verified signature\n")
