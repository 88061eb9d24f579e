"""The stored sign-in: `$XDG_CONFIG_HOME/carillon/credentials.json`, for its owner's eyes only."""

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from carillon.cli.exits import CliError, ExitCode


@dataclass(frozen=True, slots=True)
class Credentials:
    """A token and the API it is for; it is never sent to another one."""

    api_url: str
    token: str


def credentials_path() -> Path:
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The XDG base directory specification has relative values ignored.
    base = configured if configured.is_absolute() else Path.home() / ".config"
    return base / "carillon" / "credentials.json"


def load_credentials() -> Credentials | None:
    """What `save_credentials` stored; raises CliError when the file is damaged."""
    path = credentials_path()
    try:
        stored = json.loads(path.read_bytes())
        return Credentials(api_url=str(stored["api_url"]), token=str(stored["token"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        detail = f"{path}: {error!r}; run `carillon login` again"
        raise CliError.local(
            ExitCode.NOT_ALLOWED, "The stored sign-in cannot be read", detail
        ) from error


def save_credentials(credentials: Credentials) -> Path:
    """Replace the stored sign-in at once and whole, mode 0600; returns where it is."""
    path = credentials_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # mkstemp creates with mode 0600: at no moment can another user read the token.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".credentials-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(credentials), file)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path
