"""A bare dynalite: DynamoDB alone, which its authors validate against the one of AWS.

BatchGetItem ends at 1 MB with `UnprocessedKeys`, as on AWS.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["dynalite_server"]

REPOSITORY = Path(__file__).parents[2]

# The kernel chooses the port, and the process ends with whoever started it.
_SERVER = """
process.stdin.on('end', () => process.exit()).resume();
const server = require('dynalite')({createTableMs: 0});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"""


@pytest.fixture(scope="session")
def dynalite_server() -> Iterator[str]:
    """The endpoint URL of an empty dynalite on loopback, stopped at the end of the session."""
    node = shutil.which("node")
    assert node, "no node in PATH: make setup"
    with subprocess.Popen(
        [node, "-e", _SERVER],
        cwd=REPOSITORY,
        env={**os.environ, "NODE_PATH": str(REPOSITORY / "node_modules")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        port = server.stdout.readline().strip()
        assert port, "dynalite did not start"
        yield f"http://127.0.0.1:{port}"
        server.stdin.close()
