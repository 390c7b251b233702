"""Reads a broker's metrics over HTTP, on loopback or inside the cell."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable

# Connections over the link listener, which are those of tenants' clients.
CONNECTIONS = re.compile(rb"^freshet_client_connections (\S+)", re.MULTILINE)
# Counters of a topic since its broker started. Kafka's exporters use the same names.
TOPIC = re.compile(
    rb"^kafka_server_brokertopicmetrics_(\w+)_total"
    rb'\{topic="([A-Za-z0-9._-]+)"\} (\d+)(?:\.0+)?(?: |$)',
    re.MULTILINE,
)
# The first offset of the lowest damaged batch of a partition.
DAMAGED = re.compile(
    rb"^freshet_damaged_batch_first_offset"
    rb'\{topic="([A-Za-z0-9._-]+)",partition="(\d+)"\} (\d+)(?:\.0+)?(?: |$)',
    re.MULTILINE,
)
TOPIC_COUNTERS = (b"bytesin", b"bytesout", b"messagesin")
ANSWER_BYTES_MAX = 64 * 1024 * 1024


async def scrape_metrics(address: str, *, timeout_s: float) -> bytes | None:
    """The text of `/metrics` at `host:port`; None where no valid answer came in time."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _get_metrics(address)
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None


def connections_in(metrics: bytes) -> int | None:
    """The number of tenants' client connections; None where the metrics do not have it."""
    match = CONNECTIONS.search(metrics)
    if match is None:
        return None
    try:
        count = float(match.group(1))
    except ValueError:
        return None
    return int(count) if math.isfinite(count) and count >= 0 else None


def topics_in(pages: Iterable[bytes]) -> dict[str, list[int]]:
    """`[bytes in, bytes out, records in]` by topic, summed over the metrics of several brokers."""
    topics: dict[str, list[int]] = {}
    for page in pages:
        for counter, topic, count in TOPIC.findall(page):
            if counter in TOPIC_COUNTERS:
                counts = topics.setdefault(topic.decode(), [0] * len(TOPIC_COUNTERS))
                counts[TOPIC_COUNTERS.index(counter)] += int(count)
    return topics


def damaged_in(pages: Iterable[bytes]) -> tuple[tuple[str, int, int], ...]:
    """Topic, partition and offset of the lowest damaged batch of each partition, sorted."""
    lowest: dict[tuple[str, int], int] = {}
    for page in pages:
        for topic, number, offset in DAMAGED.findall(page):
            partition = topic.decode(), int(number)
            lowest[partition] = min(int(offset), lowest.get(partition, int(offset)))
    return tuple((topic, number, offset) for (topic, number), offset in sorted(lowest.items()))


async def _get_metrics(address: str) -> bytes | None:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        request = f"GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
        writer.write(request.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        status, *lines = head.lower().split(b"\r\n")
        headers = dict(line.split(b":", 1) for line in lines if b":" in line)
        length = int(headers.get(b"content-length", b"-1"))
        if status.split(b" ")[1:2] != [b"200"] or not 0 <= length <= ANSWER_BYTES_MAX:
            return None
        return await reader.readexactly(length)
    finally:
        writer.close()
