"""The console as a function of the stack serves it: files, and nothing of any owner."""

import base64
import gzip
import os
from collections.abc import Mapping
from typing import Any

from carillon.console import PAGE, Site

_SITE = Site(api="..", sign_in="oidc", connect_to=tuple(os.environ.get("CONNECT_TO", "").split()))
_PATH = "/console/"


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """The answer to an event of an HTTP API; files are compressed, which every browser takes."""
    asked = str(event["rawPath"])
    path = asked.partition(_PATH)[2]
    if not path:
        place = PAGE if asked.endswith("/") else f"console/{PAGE}"
        return {"statusCode": 302, "headers": {"Location": place}, "body": ""}
    answer = _SITE.answer(path)
    return {
        "statusCode": answer.status,
        "headers": {**answer.headers, "Content-Encoding": "gzip"},
        "body": base64.b64encode(gzip.compress(answer.body, mtime=0)).decode(),
        "isBase64Encoded": True,
    }
