"""Which seeds nobody has looked at: others for each commit, and the same for everybody at one."""

import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_CODE = ("functions", "infra", "shared", "tests")
_BEGIN, _COUNT = 1_000_000_000, 1_000_000_000
"""Far from the seeds that people try by hand."""


def first_of_commit(root: Path = _ROOT) -> int:
    """The first of the seeds of the commit that is checked out at `root`; where there is no .git,
    as in an archive, of the content of the code."""
    name = _commit(root) if (root / ".git").exists() else None
    return _BEGIN + int((name or _content(root))[:12], 16) % _COUNT


def _commit(root: Path) -> str | None:
    """Its 40 hex digits; None where git cannot tell."""
    command = ["git", "-C", str(root), "rev-parse", "--verify", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _content(root: Path) -> str:
    digest = sha256()
    for path in _files(root):
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for folder in _CODE:
        yield from sorted((root / folder).rglob("*.py"))
