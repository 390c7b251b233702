"""The Celery application of the worker: one task, and nothing of Django.

A message names the task that takes the outcome. That task runs in the ordinary workers, which have
the database; this worker has only the queue.
"""

from __future__ import annotations

import json
import logging
import logging.config
from types import SimpleNamespace
from typing import Any

from celery import Celery, Task, signals
from kombu.exceptions import KombuError, OperationalError
from prometheus_client import start_http_server

from console.base.outbound.messages import Call
from console.programs.outbound.caller import Caller, make_caller
from console.settings.assemble import celery as celery_settings
from console.settings.outbound import OutboundConfig
from console.settings.schedule import OUTBOUND_QUEUE, OUTBOUND_TASK

logger = logging.getLogger(__name__)

FORMATTERS = {
    "text": "console.base.common.logs.TextFormatter",
    "json": "console.base.common.logs.JsonFormatter",
}
# The header with the id of the request that a call was made for (`console.base.common`).
REQUEST_ID = "request_id"


def make_application(config: OutboundConfig, caller: Caller | None = None) -> Celery:
    """Returns the application that `celery --app` runs. Raises `SettingsError`."""
    calls = caller or make_caller(config)
    # Without the fix-ups Celery does not set Django up where the environment names its settings.
    app = Celery("freshet-outbound", set_as_current=False, fixups=[])
    app.config_from_object(SimpleNamespace(**_settings(config)), namespace="CELERY")

    @app.task(name=OUTBOUND_TASK, bind=True)
    def call_address(
        task: Task[..., None], organization_id: str, call: str, reply: str, reference: str
    ) -> None:
        outcome = calls.make(organization_id, Call.from_text(call))
        _send_outcome(
            task,
            reply,
            {
                **json.loads(reference),
                "organization_id": organization_id,
                "outcome": outcome.to_text(),
            },
        )

    return app


def _settings(config: OutboundConfig) -> dict[str, Any]:
    return {
        **celery_settings(config.queue),
        "CELERY_BEAT_SCHEDULE": {},
        "CELERY_IMPORTS": (),
        # Bytes that end this process must not be called for again, by it or by the next one.
        "CELERY_TASK_ACKS_LATE": False,
        "CELERY_TASK_REJECT_ON_WORKER_LOST": False,
        # A call ends by its own deadline, and threads have no other.
        "CELERY_TASK_TIME_LIMIT": None,
        "CELERY_WORKER_POOL": "threads",
        "CELERY_WORKER_CONCURRENCY": config.outbound.calls,
        "CELERY_WORKER_ENABLE_REMOTE_CONTROL": False,
        # The only queue that it reads.
        "CELERY_TASK_QUEUES": None,
    }


def _send_outcome(task: Task[..., None], reply: str, arguments: dict[str, str]) -> None:
    headers: Any = task.request.headers or {}
    try:
        task.app.send_task(
            reply, kwargs=arguments, headers={REQUEST_ID: str(headers.get(REQUEST_ID, ""))}
        )
    except (OperationalError, KombuError, OSError) as error:
        # Whoever asked for the call hears nothing, and asks again or gives up by its own limit.
        logger.error("outbound.reply_lost reply=%s error=%s", reply, error)


def connect_signals(config: OutboundConfig) -> None:
    """Has a worker of this process log as the settings say, and serve its metrics."""

    @signals.setup_logging.connect(weak=False)
    def set_up_logging(**_: object) -> None:
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "formatters": {"line": {"()": FORMATTERS[config.log.format]}},
                "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
                "root": {"handlers": ["stderr"], "level": config.log.level.upper()},
            }
        )

    @signals.worker_ready.connect(weak=False)
    def serve_metrics(**_: object) -> None:
        host, _colon, port = config.metrics.outbound.rpartition(":")
        if not host:
            return
        try:
            server, _thread = start_http_server(int(port), host.strip("[]"))
        except (OSError, ValueError, OverflowError) as error:
            logger.error("metrics.not_served process=%s: %s", OUTBOUND_QUEUE, error)
            return
        logger.info("metrics.served process=%s address=%s:%s", OUTBOUND_QUEUE, host,
                    server.server_port)  # fmt: skip
