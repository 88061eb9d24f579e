"""A real MiniStack: started, used, stopped; nothing of it may be left."""

import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from carillon.local.deployment import client
from carillon.local.emulator import (
    ACCOUNT_ID,
    REPOSITORY,
    Emulator,
    EmulatorFailed,
    Family,
    free_port,
)

pytestmark = pytest.mark.ministack

#: A worker that ignores SIGTERM, and starts two children that do, too: one leaves its group.
STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
for leaves in (False, True):
    subprocess.Popen(
        [sys.executable, "-c", child],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=leaves,
    )

def handler(event, context):
    return {"path": sys.path, "event": event}
"""


def wait_until(condition: Callable[[], bool], timeout_seconds: float = 20.0) -> None:
    give_up_at = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < give_up_at, "not in time"
        time.sleep(0.05)


def create_function(endpoint_url: str, source: str) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.py", source)
    client("lambda", endpoint_url).create_function(
        FunctionName="stubborn",
        Runtime="python3.12",
        Handler="index.handler",
        Role=f"arn:aws:iam::{ACCOUNT_ID}:role/any",
        Code={"ZipFile": archive.getvalue()},
    )


def invoke(endpoint_url: str) -> dict[str, object]:
    answer = client("lambda", endpoint_url).invoke(FunctionName="stubborn", Payload=b'{"n": 1}')
    result: dict[str, object] = json.loads(answer["Payload"].read())
    return result


@pytest.fixture
def state_directory(tmp_path: Path) -> Path:
    (tmp_path / "port").write_text(f"{free_port()}\n")
    return tmp_path


def test_stop_leaves_no_process_and_no_file() -> None:
    with Emulator() as emulator:
        create_function(emulator.endpoint_url, STUBBORN)
        assert invoke(emulator.endpoint_url)["event"] == {"n": 1}
        family = emulator.family
        temporary_directory = emulator.log_path.parent
        assert len(family.members()) == 4
        assert family.group_id != os.getpgrp()
    assert family.members() == []
    assert not temporary_directory.exists()


def test_state_survives_a_stop_at_the_same_address(state_directory: Path) -> None:
    with Emulator(state_directory) as emulator:
        endpoint_url = emulator.endpoint_url
        queue = client("sqs", endpoint_url).create_queue(QueueName="kept")["QueueUrl"]
        client("sqs", endpoint_url).send_message(QueueUrl=queue, MessageBody="still here")
    with Emulator(state_directory) as emulator:
        assert emulator.endpoint_url == endpoint_url
        answer = client("sqs", endpoint_url).receive_message(QueueUrl=queue)
        assert [message["Body"] for message in answer["Messages"]] == ["still here"]


def test_state_that_could_not_be_saved_is_reported(state_directory: Path) -> None:
    emulator = Emulator(state_directory)
    emulator.start()
    client("sqs", emulator.endpoint_url).create_queue(QueueName="lost")
    (state_directory / "services").write_text("a file is in the way")
    with pytest.raises(EmulatorFailed, match="could not save its state"):
        emulator.stop()


def test_a_launcher_that_cannot_start_says_why(tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho the reason\nexit 3\n")
    interpreter.chmod(0o755)
    with pytest.raises(EmulatorFailed, match="the reason"):
        Emulator(interpreter=interpreter).start()


def test_without_ministack_the_message_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(EmulatorFailed, match="make setup"):
        Emulator(interpreter=tmp_path / "absent").start()


def test_a_starter_that_is_killed_leaves_no_process_and_loses_no_state(
    state_directory: Path,
) -> None:
    starter = f"""
import time
from pathlib import Path
from carillon.local.deployment import client
from carillon.local.emulator import Emulator
emulator = Emulator(Path({str(state_directory)!r}))
emulator.start()
client("sqs", emulator.endpoint_url).create_queue(QueueName="kept")
print(emulator.family.group_id, emulator.family.mark, flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", starter], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        group_id, mark = process.stdout.readline().split()
        family = Family(int(group_id), mark)
        assert family.members()
        process.kill()
    wait_until(lambda: not family.members())
    with Emulator(state_directory) as emulator:
        queues = client("sqs", emulator.endpoint_url).list_queues()["QueueUrls"]
        assert [url.rpartition("/")[2] for url in queues] == ["kept"]
