"""The logs of tasks: JSON lines on standard error, each with the ids of the run."""

import json
import logging
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime

from carillon.tasks import TaskLogger

ACTION = "task.log"
"""The `action` of every record (carillon.telemetry.Action.TASK_LOG, which is slow to import)."""

TRACE_LIMIT_CHARACTERS = 10_000
"""Of a trace its end is logged: CloudWatch takes 256 KiB a line, and costs by size."""

_OWN_MEMBERS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """One JSON object per record; `bound` are the members of every record until they change."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: Mapping[str, object] = {}

    def format(self, record: logging.LogRecord) -> str:
        extra = {key: value for key, value in vars(record).items() if key not in _OWN_MEMBERS}
        members: dict[str, object] = {
            "level": record.levelname,
            "message": record.getMessage(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "service": "executor",
            "action": ACTION,
            "logger": record.name,
            **self.bound,
            **extra,
        }
        if record.exc_info:
            text = "".join(traceback.format_exception(*record.exc_info))
            members["exception"] = text[-TRACE_LIMIT_CHARACTERS:]
        return json.dumps(members, default=repr)


def start_logging(level: str) -> JsonLines:
    """Send every logger of this process to standard error as JSON lines."""
    lines = JsonLines()
    handler = logging.StreamHandler()
    handler.setFormatter(lines)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    return lines


def task_logger(name: str, ids: Mapping[str, object]) -> TaskLogger:
    return TaskLogger(logging.getLogger(name), dict(ids))
