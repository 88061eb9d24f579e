"""The console: the files of a web page, and how they are answered. `lib/html.js` says how a page
of it is added."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from carillon.console.bundle import ENTRY, bundled

FOLDER = Path(__file__).parent
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""The kinds of files that are served besides the page itself, and nothing else is."""
PAGE = "index.html"
_COMMENT = re.compile(r"/\*.*?\*/|^\s*//[^\n]*", re.DOTALL | re.MULTILINE)
_INDENT = re.compile(r"^\s+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request for a file."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def assets() -> dict[str, bytes]:
    """Each file by its path below the folder, our modules as one; the page is not one of them."""
    paths = sorted(path for path in FOLDER.rglob("*") if path.suffix in TYPES)
    files = {path.relative_to(FOLDER).as_posix(): path.read_text() for path in paths}
    modules = {path: _lean(path, text) for path, text in files.items() if path.endswith(".js")}
    own = {path for path in modules if not path.startswith("vendor/")}
    kept = {path: text for path, text in files.items() if path not in own}
    return {path: text.encode() for path, text in (kept | {ENTRY: bundled(modules)}).items()}


def _lean(path: str, text: str) -> str:
    """A module; ours without indentation and comments, a third of it, whose types no browser
    reads."""
    return text if path.startswith("vendor/") else _INDENT.sub("", _COMMENT.sub("", text))


class Site:
    """The page, and its files below a digest of them all: a new release is a new address, so that
    browsers keep files for good.

    `api` is the API's address from the page; `sign_in` is `key` on loopback, else `oidc`;
    `connect_to` are origins besides the page's own that it may send requests to.
    """

    def __init__(
        self, *, api: str, sign_in: str, connect_to: tuple[str, ...] = (), read_only: bool = False
    ) -> None:
        self._assets = assets()
        digest = hashlib.sha256()
        for path, content in self._assets.items():
            digest.update(path.encode() + b"\0" + content)
        self.digest = digest.hexdigest()[:16]
        page = (FOLDER / PAGE).read_text()
        words = {
            '"{api}"': f'"{api}"',
            '"{sign_in}"': f'"{sign_in}" data-read-only="{str(read_only).lower()}"',
            "{assets}": self.digest,
        }
        for placeholder, word in words.items():
            page = page.replace(placeholder, word)
        self._page = page.encode()
        self._headers = security_headers(connect_to)

    def answer(self, path: str) -> Answer:
        """The file at a path below the console's, which begins without a slash; 404 otherwise."""
        if path in ("", PAGE):
            kind, caching, body = "text/html; charset=utf-8", "no-store", self._page
        else:
            digest, _, name = path.partition("/")
            if digest != self.digest or name not in self._assets:
                return Answer(404, b"not here\n", {**self._headers, "Cache-Control": "no-store"})
            kind, body = TYPES[Path(name).suffix], self._assets[name]
            caching = "public, max-age=31536000, immutable"
        return Answer(200, body, {**self._headers, "Content-Type": kind, "Cache-Control": caching})


def security_headers(connect_to: tuple[str, ...]) -> dict[str, str]:
    """Headers by which the page may run and load its own files, and nothing else. No code can make
    HTML of text (Trusted Types without a policy)."""
    policy = (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        " ".join(("connect-src 'self'", *connect_to)),
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
    return {
        "Content-Security-Policy": "; ".join(policy),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
