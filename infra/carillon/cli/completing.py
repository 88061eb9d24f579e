"""Completion of names in a shell: read from the API at once, or not at all."""

from contextlib import closing, suppress
from threading import Thread

from carillon.cli.client import ApiClient
from carillon.client import settings
from carillon.client.sign_in import load_credentials, sign_in_of

_SECONDS = 1.0
_MOST = 50


def job_names(incomplete: str) -> list[str]:
    """The names of jobs that begin so; none where the API is away, refuses, or takes too long."""
    query: dict[str, str | int] = {"view": "summary"}
    return _soon("/jobs", query | ({"q": incomplete} if incomplete else {}))


def calendar_names(incomplete: str) -> list[str]:
    """The names of calendars that begin so; none as with jobs."""
    return [name for name in _soon("/calendars", {}) if name.startswith(incomplete)]


def _soon(path: str, query: dict[str, str | int]) -> list[str]:
    found: list[str] = []

    def look() -> None:
        # Whatever is wrong: a message would stand amid what somebody types.
        with suppress(Exception):
            found.extend(_names(path, query))

    # A thread, since the client's repetitions have no end of their own that is soon enough.
    thread = Thread(target=look, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    return found.copy()


def _names(path: str, query: dict[str, str | int]) -> list[str]:
    url, token = sign_in_of(
        settings.api_url(),
        settings.token(),
        lambda: load_credentials(settings.credentials_path()),
    )
    if url is None or token is None:
        return []
    with closing(ApiClient(url, token, team=settings.team())) as api:
        return [str(item["name"]) for item in api.items(path, _MOST, query)]
