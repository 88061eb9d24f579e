"""`python -m carillon.local run`, and `deploy` for an app of yours."""

from __future__ import annotations

import sys
from collections.abc import Callable

from carillon.local import foreign, run

COMMANDS: dict[str, Callable[[list[str]], int]] = {"run": run.main, "deploy": foreign.main}

if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in COMMANDS:
        sys.exit(
            "usage: python -m carillon.local run [--for SECONDS] [--state-directory DIRECTORY]\n"
            "       python -m carillon.local deploy [--endpoint-url URL] [options of cdk deploy]"
        )
    sys.exit(COMMANDS[sys.argv[1]](sys.argv[2:]))
