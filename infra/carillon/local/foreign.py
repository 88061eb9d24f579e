"""`python -m carillon.local deploy`: a CDK app of yours to the emulator, in the app's folder."""

import argparse
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial

from carillon.local.deployment import (
    BOOTSTRAP_STACK_NAME,
    CDK,
    aws_environment,
    client,
    install_dependencies,
    stack_exists,
)
from carillon.local.emulator import ACCOUNT_ID, INTERPRETER, REGION

USUAL_ENDPOINT = "http://127.0.0.1:4566"
"""That of `make run`, unless another program has the port."""
MOST_EXECUTORS = 4
"""Fifty at a time would start fifty processes of Python at once, and none of them in time."""


def cdk_command(*words: str) -> list[str]:
    """A command of the CDK, for an app that an emulator is to get."""
    emulation = {
        "layer_directory": str(install_dependencies()),
        "layer_python": str(INTERPRETER),
        "most_executors": MOST_EXECUTORS,
    }
    return [str(CDK), *words, "-c", f"carillon:emulation={json.dumps(emulation)}", "--no-notices"]


def deploy_words(*more: str) -> tuple[str, ...]:
    return ("deploy", "--require-approval", "never", "--progress", "events", *more)


def variables(endpoint_url: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of such a command: of the caller's Python, with no way to an account."""
    path = os.pathsep.join([inherited.get("PATH", os.defpath), str(CDK.parent)])
    return {**aws_environment(endpoint_url, inherited), "PATH": path}


def main(arguments: Sequence[str]) -> int:
    """Answers the exit code of the CDK."""
    parser = argparse.ArgumentParser(prog="python -m carillon.local deploy")
    parser.add_argument("--endpoint-url", default=USUAL_ENDPOINT)
    known, others = parser.parse_known_args(arguments)
    run = partial(subprocess.run, env=variables(known.endpoint_url, os.environ), check=False)
    if not stack_exists(client("cloudformation", known.endpoint_url), BOOTSTRAP_STACK_NAME):
        done = run(cdk_command("bootstrap", f"aws://{ACCOUNT_ID}/{REGION}"))
        if done.returncode:
            return done.returncode
    return run(cdk_command(*deploy_words(*others))).returncode
