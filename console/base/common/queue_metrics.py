"""Metrics of the outbox and of Celery's queues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from amqp.exceptions import NotFound as AmqpNotFound
from celery import current_app
from django.db.models import Count, Min
from kombu.exceptions import ChannelError, KombuError, OperationalError
from prometheus_client.metrics_core import Metric

from console.base.common.clock import now
from console.base.common.metrics import gauge
from console.base.common.models import OutboxEntry
from console.settings.schedule import NIGHTLY_QUEUE, OUTBOUND_QUEUE

QUEUES = ("celery", NIGHTLY_QUEUE, OUTBOUND_QUEUE)


def outbox_metrics() -> Sequence[Metric]:
    """Reads how many tasks wait in the outbox, and how long the oldest has waited."""
    waiting = OutboxEntry.objects.aggregate(count=Count("pk"), oldest=Min("created_at"))
    oldest = waiting["oldest"]
    age_s = 0.0 if oldest is None else max(0.0, (now() - oldest) / timedelta(seconds=1))
    return [
        gauge(
            "freshet_outbox_entries", "Tasks that wait in the outbox", (), {(): waiting["count"]}
        ),
        gauge("freshet_outbox_oldest_seconds", "Age of the oldest of them", (), {(): age_s}),
    ]


def queue_metrics() -> Sequence[Metric]:
    """Reads how many tasks wait for a worker; the family is empty if the broker does not answer."""
    lengths: dict[tuple[str, ...], float] = {}
    try:
        with current_app.connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, timeout=2)
            for queue in QUEUES:
                lengths[queue,] = _queue_length(connection.default_channel, queue)
    except (OperationalError, KombuError, OSError):
        lengths = {}
    return [gauge("freshet_queue_tasks", "Tasks that wait for a worker", ("queue",), lengths)]


def _queue_length(channel: Any, queue: str) -> int:  # noqa: ANN401 (kombu's, of any transport)
    """Returns how many messages a queue has; 0 for one that does not exist yet."""
    try:
        return int(channel.queue_declare(queue, passive=True).message_count)
    except (ChannelError, AmqpNotFound):
        return 0
