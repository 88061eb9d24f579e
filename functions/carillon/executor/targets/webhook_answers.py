"""The meaning of an endpoint's answer for the run. Pure."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from carillon.domain.run import RunError, kept_text, one_line
from carillon.executor.targets.call import Failure, Outcome, Success

RETRIED_CLIENT_ERRORS = frozenset({408, 425, 429})
ACCEPTED = 202
"""The status by which a receiver says that it will report the end."""
_LONGEST_SECONDS = 10**9
_HIDDEN = "[hidden]"
_SHORTEST_HIDDEN = 4
"""A shorter text is no secret, and may be in any text by chance."""
_KEPT_BY_SCRIPTS = "!'()*"
"""The characters that JavaScript's encodeURIComponent leaves as they are, besides Python's."""
_CODED_IN_JSON = ("<>&", "<>&'=", "<>&'`\"+")
"""The characters that JSON of Go, of Gson and of .NET has by their codes, for the sake of pages."""
_HEXADECIMAL = re.compile("%[0-9A-F]{2}")


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers and the beginning of the body."""

    status: int
    headers: Sequence[tuple[bytes, bytes]] = ()
    body: bytes = b""

    def header(self, name: bytes) -> str | None:
        """The first value of a header (its name in lower case)."""
        values = (value.decode("latin-1") for key, value in self.headers if key.lower() == name)
        return next(values, None)


def judge(
    answer: Answer, now: datetime, hidden: Sequence[str] = (), *, keeps_whole: bool = False
) -> Outcome:
    """2xx is success. Redirects are final, and so are 4xx but for those that ask for a repetition.

    For those and for 5xx a Retry-After counts. `hidden` are secrets that were sent: an endpoint
    may repeat them, and they must not be shown.
    """
    status = answer.status
    text = without(hidden, answer.body.decode("utf-8", "replace"))
    if 200 <= status < 300:
        result = kept_text(f"{status} {text}", whole=keeps_whole)
        return Success(result, is_accepted=status == ACCEPTED)
    message = f"the endpoint answered {status}"
    if 300 <= status < 400:
        place = answer.header(b"location")
        to = "" if place is None else f" to {without(hidden, place)}"
        message = f"{message}{to}; redirects are not followed"
    elif text:
        message = f"{message}: {text}"
    permanent = 300 <= status < 500 and status not in RETRIED_CLIENT_ERRORS
    wanted = None if permanent else answer.header(b"retry-after")
    return Failure(
        RunError(f"http_{status}", one_line(message), permanent),
        retry_after_seconds=None if wanted is None else retry_after_seconds(wanted, now),
    )


def retry_after_seconds(text: str, now: datetime) -> float | None:
    """A Retry-After, in seconds from now, at least 0: seconds or an HTTP date; else None."""
    text = text.strip()
    if re.fullmatch(r"[0-9]+", text):
        # Not of all digits: Python makes no number of thousands of them.
        return float(min(int(text.lstrip("0")[:12] or "0"), _LONGEST_SECONDS))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return max(0.0, (at - now).total_seconds())


def without(hidden: Sequence[str], text: str) -> str:
    """The text without the secrets that it may hold."""
    spellings = {
        spelling
        for secret in hidden
        if len(secret) >= _SHORTEST_HIDDEN
        for spelling in _spellings(secret)
    }
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, _HIDDEN)
    return text


def _spellings(secret: str) -> Iterator[str]:
    """The secret as it is, as JSON has it, and as URLs and forms do."""
    yield secret
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield from (escaped, escaped.replace("/", "\\/"))
    for characters in _CODED_IN_JSON:
        for form in ("\\u{:04x}", "\\u{:04X}"):
            yield "".join(
                form.format(ord(character))
                if character in characters
                else json.dumps(character)[1:-1]
                for character in secret
            )
    for safe in ("", "/", _KEPT_BY_SCRIPTS):
        quoted = quote(secret, safe, errors="replace")
        for spelled in (quoted, _HEXADECIMAL.sub(lambda code: code[0].lower(), quoted)):
            yield from (spelled, spelled.replace("%20", "+"))
