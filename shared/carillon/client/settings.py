"""The settings of a client: the environment, and where a sign-in is stored."""

import os
from pathlib import Path

API_URL = "CARILLON_API_URL"
TOKEN = "CARILLON_TOKEN"


def api_url() -> str | None:
    return os.environ.get(API_URL) or None


def token() -> str | None:
    return os.environ.get(TOKEN) or None


def credentials_path() -> Path:
    """The file of the stored sign-in, of the command and of clients."""
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The XDG base directory specification has relative values ignored.
    base = configured if configured.is_absolute() else Path.home() / ".config"
    return base / "carillon" / "credentials.json"
