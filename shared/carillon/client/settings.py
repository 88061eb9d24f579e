"""The settings of a client: the environment, and where a sign-in is stored."""

import os
from collections.abc import Callable
from pathlib import Path

from carillon.client.sign_in import Machine
from carillon.errors import ConfigurationError

API_URL = "CARILLON_API_URL"
TEAM = "CARILLON_TEAM"
TOKEN = "CARILLON_TOKEN"
TOKEN_FILE = "CARILLON_TOKEN_FILE"
CLIENT_ID = "CARILLON_CLIENT_ID"
CLIENT_SECRET = "CARILLON_CLIENT_SECRET"
CLIENT_SCOPE = "CARILLON_CLIENT_SCOPE"


def api_url() -> str | None:
    return os.environ.get(API_URL) or None


def team() -> str | None:
    """The team that requests act for; none where the variable is empty."""
    return os.environ.get(TEAM) or None


def token() -> str | Callable[[], str] | Machine | None:
    """The token of the environment, or its source; raises ConfigurationError."""
    return os.environ.get(TOKEN) or source_of_tokens()


def source_of_tokens() -> Callable[[], str] | Machine | None:
    """The file that somebody else keeps fresh, or the machine that signs in by itself; raises
    ConfigurationError."""
    return token_file() or machine()


def machine() -> Machine | None:
    """The client of the environment; raises ConfigurationError where id or secret is missing."""
    client_id, secret = os.environ.get(CLIENT_ID), os.environ.get(CLIENT_SECRET)
    if client_id and secret:
        return Machine(client_id, secret, os.environ.get(CLIENT_SCOPE, ""))
    for name, value, other in (
        (CLIENT_ID, client_id, CLIENT_SECRET),
        (CLIENT_SECRET, secret, CLIENT_ID),
    ):
        if value:
            raise ConfigurationError(other, f"must be set together with {name}")
    return None


def token_file() -> Callable[[], str] | None:
    """A reader of CARILLON_TOKEN_FILE, which raises ConfigurationError where it cannot be read."""
    path = os.environ.get(TOKEN_FILE)
    if not path:
        return None

    def read() -> str:
        try:
            return Path(path).read_text()
        except (OSError, ValueError) as error:
            raise ConfigurationError(TOKEN_FILE, f"{path} cannot be read: {error}") from error

    return read


def credentials_path() -> Path:
    """The file of the stored sign-in, of the command and of clients."""
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The XDG base directory specification has relative values ignored.
    base = configured if configured.is_absolute() else Path.home() / ".config"
    return base / "carillon" / "credentials.json"
