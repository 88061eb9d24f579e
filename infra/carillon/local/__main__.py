"""`python -m carillon.local run`."""

from __future__ import annotations

import sys

from carillon.local.run import main

if __name__ == "__main__":
    if sys.argv[1:2] != ["run"]:
        sys.exit(
            "usage: python -m carillon.local run [--for SECONDS] [--state-directory DIRECTORY]"
        )
    sys.exit(main(sys.argv[2:]))
