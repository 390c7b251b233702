"""Carries the request's id in Celery's messages, so that a worker's log lines have it too."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from celery import Task, signals

from console.base.common.requests import current_request_id, in_request

HEADER = "request_id"

_open: dict[str, AbstractContextManager[None]] = {}


@signals.before_task_publish.connect
def add_request_id(headers: dict[str, Any] | None = None, **_: object) -> None:
    """Adds the current request's id to a task's message when it is sent."""
    if headers is not None:
        headers.setdefault(HEADER, current_request_id())


@signals.task_prerun.connect
def enter_request(task_id: str = "", task: Task[..., object] | None = None, **_: object) -> None:
    """Sets the id of the request that a task was sent for, when the task begins."""
    headers = (None if task is None else task.request.headers) or {}
    scope = in_request(str(headers.get(HEADER, "")))
    scope.__enter__()
    _open[task_id] = scope


@signals.task_postrun.connect
def leave_request(task_id: str = "", **_: object) -> None:
    """Removes the request's id when the task has ended, before the next one begins."""
    scope = _open.pop(task_id, None)
    if scope is not None:
        scope.__exit__(None, None, None)
