"""What happens between botocore and the service: watched, and disturbed on purpose."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.endpoint import Endpoint
from botocore.exceptions import ConnectionClosedError


@dataclass(frozen=True)
class Call:
    """One request as it went out, botocore's own repetitions included."""

    operation: str
    body: dict[str, Any]


class Wire:
    """Sees every request of botocore in this process while a test runs.

    Faults are set per operation (`PutItem`), for the next so many requests of it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Call] = []
        self._lost: Counter[str] = Counter()
        self._refused: dict[str, tuple[str, int]] = {}
        self._edits: dict[str, list[Callable[[dict[str, Any]], None]]] = {}
        original = Endpoint._do_get_response  # type: ignore[attr-defined]

        def disturbed(endpoint: Endpoint, request: Any, model: Any, context: Any) -> Any:
            operation = model.name
            self.calls.append(Call(operation, json.loads(request.body)))
            if (refusal := self._next_refusal(operation)) is not None:
                return (refusal, None)
            answer = original(endpoint, request, model, context)
            if self._lost[operation]:
                self._lost[operation] -= 1
                return (None, ConnectionClosedError(endpoint_url=request.url))
            if answer[0] is not None and self._edits.get(operation):
                self._edits[operation].pop(0)(answer[0][1])
            return answer

        monkeypatch.setattr(Endpoint, "_do_get_response", disturbed)
        # Nobody wants to wait for botocore's pauses between repetitions.
        monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))

    def lose_answers(self, operation: str, times: int = 1) -> None:
        """Let the next requests have their effect, but break the connection before the answer."""
        self._lost[operation] = times

    def refuse(self, operation: str, code: str, times: int) -> None:
        """Answer the next requests with an error of the service; they have no effect."""
        self._refused[operation] = (code, times)

    def edit_answer(self, operation: str, edit: Callable[[dict[str, Any]], None]) -> None:
        """Let `edit` change the next answer that is parsed for the operation."""
        self._edits.setdefault(operation, []).append(edit)

    def operations(self) -> list[str]:
        return [call.operation for call in self.calls]

    def _next_refusal(self, operation: str) -> Any:
        code, left = self._refused.get(operation, ("", 0))
        if not left:
            return None
        self._refused[operation] = (code, left - 1)
        status = 500 if code == "InternalServerError" else 400
        parsed = {
            "Error": {"Code": code, "Message": "refused by the test"},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}},
        }
        return (SimpleNamespace(status_code=status, headers={}, content=b""), parsed)
