"""The stored sign-in, and what may be sent where."""

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from carillon.errors import ConfigurationError, InvalidFieldError, reason_of

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(url: str) -> bool:
    """True if the URL's host is this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def checked_url(url: str, field: str) -> str:
    """The URL without a trailing slash; raises InvalidFieldError unless a secret may be sent
    there."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid:
        raise InvalidFieldError(field, f"{url!r} is not a URL such as https://example.com")
    if parts.scheme == "http" and not is_loopback(url):
        message = "must be https: a token would cross the network in the clear"
        raise InvalidFieldError(field, message)
    return url.rstrip("/")


def checked_token(text: str) -> str:
    """The token without white space around it; raises InvalidFieldError for what no header can
    carry."""
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise InvalidFieldError("token", "is empty, or no bearer token")
    return token


@dataclass(frozen=True, slots=True)
class Refresh:
    """The means for new tokens of a client, which Cognito has at `endpoint`."""

    endpoint: str
    client_id: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A token and the API it is for; it is never sent to another one."""

    api_url: str
    token: str = field(repr=False)
    refresh: Refresh | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """A client that signs in by itself, with its id and secret, for `scope` (words with blanks
    between them), without one for all that it may have."""

    client_id: str
    secret: str = field(repr=False)
    scope: str = ""


def load_credentials(path: Path) -> Credentials | None:
    """The credentials that are stored; raises ConfigurationError when the file is damaged."""
    try:
        stored = json.loads(path.read_bytes())
        refresh = stored.get("refresh")
        return Credentials(
            api_url=str(stored["api_url"]),
            token=str(stored["token"]),
            refresh=None if refresh is None else Refresh(**refresh),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            str(path), f"{reason_of(error)}; run `carillon login` again"
        ) from error


def save_credentials(path: Path, credentials: Credentials) -> None:
    """Replace the stored sign-in at once and whole, mode 0600."""
    members: dict[str, Any] = asdict(credentials)
    if credentials.refresh is None:
        del members["refresh"]
    write_private(path, json.dumps(members))


def write_private(path: Path, text: str) -> None:
    """Replace a file at once and whole, mode 0600; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # mkstemp creates with mode 0600: at no moment can another user read the token.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def sign_in_of(
    url: str | None,
    token: str | Callable[[], str] | Machine | None,
    load: Callable[[], Credentials | None],
) -> tuple[str | None, str | Callable[[], str] | Machine | Credentials | None]:
    """The API's address, and the token for it or the stored sign-in: what is given, else what is
    stored. A stored sign-in is for the API that it was stored for, and no other."""
    if url is not None and token is not None:
        return url, token
    stored = load()
    if stored is None:
        return url, token
    url = stored.api_url if url is None else url
    # Compared with the slash cut.
    if token is None and url.rstrip("/") == stored.api_url:
        return url, stored
    return url, token
