"""Spans as a collector takes them: OTLP in JSON (ids in hexadecimal, 64-bit numbers as text, enums
as numbers). Pure."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from carillon.domain.tracing import Step, span_id, trace_id
from carillon.executor.tracing.spans import Span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FAILED = 2


def request_of(spans: Iterable[Span], service: str) -> bytes:
    """The body of a request that exports the spans of the executors of `service`."""
    scope = {"scope": {"name": "carillon"}, "spans": [_form(span) for span in spans]}
    resource = {"service.name": service, "cloud.provider": "aws"}
    body = {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}
    return json.dumps({"resourceSpans": [body]}, separators=(",", ":")).encode()


def _form(span: Span) -> dict[str, Any]:
    run_id = span.run.key.run_id
    failed = {} if span.error is None else {"error.type": span.error.kind}
    form: dict[str, Any] = {
        "traceId": trace_id(run_id),
        "spanId": span_id(run_id, span.step, span.attempt),
        "name": span.name,
        "kind": int(span.kind),
        "startTimeUnixNano": _nanoseconds(span.started_at),
        "endTimeUnixNano": _nanoseconds(max(span.started_at, span.ended_at)),
        "attributes": _attributes({**span.attributes, **failed}),
    }
    if span.parent is not None:
        attempt = 0 if span.parent is Step.RUN else span.attempt
        form["parentSpanId"] = span_id(run_id, span.parent, attempt)
    if span.error is not None:
        form["status"] = {"code": _FAILED, "message": span.error.message}
    if span.link is not None:
        linked = span.link.run_id
        form["links"] = [{"traceId": trace_id(linked), "spanId": span_id(linked, Step.RUN)}]
    return form


def _attributes(values: Mapping[str, str | int]) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)},
        }
        for key, value in values.items()
    ]


def _nanoseconds(at: datetime) -> str:
    return str((at - _EPOCH) // _MICROSECOND * 1000)
