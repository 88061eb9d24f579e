"""The wheel of this checkout, and environments that have it and nothing of the checkout."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKED = ROOT / "infra" / "requirements" / "development.txt"


@dataclass(frozen=True)
class Project:
    """A folder with an environment of its own."""

    folder: Path

    def run(
        self, *command: str, variables: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of the environment, which is active and knows of no other; `variables` may
        have a path for more commands."""
        more = dict(variables or {})
        path = [f"{self.folder}/venv/bin", more.pop("PATH", "/usr/bin:/bin")]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={"HOME": str(Path.home()), **more, "PATH": ":".join(path)},
            executable=self._executable(command[0]),
            capture_output=True,
            text=True,
            check=False,
        )

    def _executable(self, command: str) -> str:
        own = self.folder / "venv" / "bin" / command
        return str(own) if own.exists() else command

    def python(self, program: str) -> str:
        done = self.run("python", "-c", program)
        assert done.returncode == 0, done.stderr
        return done.stdout


def built(directory: Path) -> Path:
    """The wheel, in `directory`."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*build, "--directory", str(directory)], cwd=ROOT, check=True)
    (wheel,) = directory.glob("*.whl")
    return wheel


def installed(folder: Path, requirement: str) -> Project:
    """An environment in `folder` that has what is required, in the locked versions."""
    uv(["venv", "--quiet", "--python", sys.executable, "venv"], folder)
    install = ["pip", "install", "--quiet", "--no-config", "--python", "venv"]
    uv([*install, "--constraint", str(LOCKED), requirement], folder)
    return Project(folder)


def uv(arguments: Sequence[str], folder: Path) -> None:
    """uv's cache first, so that nothing is fetched when it has everything."""
    for network in (["--offline"], []):
        command = [sys.executable, "-m", "uv", *arguments, *network]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
    raise AssertionError(done.stderr)
