"""The log format of the control plane's processes: one event a line, with the ids of its cause.

A record's own fields (`extra`) follow the message: `name=value` in text, members in JSON.
`request_id` is the id of the REST request that caused the event, through Celery too, and
`operation_id` that of the operation that is worked on.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from typing_extensions import override

# Attributes that every record has, or that repeat the message (Celery's `data`): not logged again.
_OWN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "data"}
# Ids that have a place of their own in the line; `NOTHING` is the value where there is none.
IDS = ("request_id", "operation_id")
NOTHING = "-"


# Django logs a request here that it refuses for what its sender wrote, such as a foreign `Host`.
SUSPICIOUS = "django.security."
SUSPICIOUS_EVERY_S = 1.0
SUSPICIOUS_CHARS_MAX = 200


class SuspiciousFilter(logging.Filter):
    """Shortens what is logged of requests that Django refuses for what their senders wrote.

    It is one line, without a traceback, and at most one a second of each kind, so that nobody fills
    the log. The line says how many were `passed_over` before it.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        # By kind: when the next line may come, and how many did not.
        self._kinds: dict[str, tuple[float, int]] = {}

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is logged; one of a refused request is shortened."""
        if not record.name.startswith(SUSPICIOUS):
            return True
        with self._lock:
            moment = self._clock()
            due, passed_over = self._kinds.get(record.name, (moment, 0))
            if moment < due:
                self._kinds[record.name] = (due, passed_over + 1)
                return False
            self._kinds[record.name] = (moment + SUSPICIOUS_EVERY_S, 0)
        text = record.getMessage()
        record.msg, record.args = text[:SUSPICIOUS_CHARS_MAX], ()
        record.exc_info = record.exc_text = None
        vars(record).pop("request", None)
        record.passed_over = passed_over
        return True


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Returns a record's own fields, from `extra`, without the ids."""
    return {k: v for k, v in vars(record).items() if k not in _OWN and k not in IDS}


class TextFormatter(logging.Formatter):
    """`LEVEL logger [request operation] message name=value …`, then the traceback."""

    @override
    def formatMessage(self, record: logging.LogRecord) -> str:
        ids = [str(getattr(record, name, NOTHING)) for name in IDS]
        shown = " ".join(ids if ids[1] != NOTHING else ids[:1])
        line = f"{record.levelname} {record.name} [{shown}] {record.message}"
        return " ".join((line, *(f"{k}={_as_word(v)}" for k, v in fields_of(record).items())))

    @override
    def usesTime(self) -> bool:
        return False


class JsonFormatter(logging.Formatter):
    """One JSON object a line; `at` is the time in ISO 8601, UTC."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        content: dict[str, object] = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in IDS:
            if getattr(record, name, NOTHING) != NOTHING:
                content[name] = getattr(record, name)
        content |= fields_of(record)
        if record.exc_info:
            content["traceback"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)


def _as_word(value: object) -> str:
    """Returns a value's text, quoted as JSON if it is empty or has spaces, quotes or `=`."""
    text = str(value)
    return text if text and not any(c.isspace() or c in '"=' for c in text) else json.dumps(text)
