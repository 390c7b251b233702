"""A Kafka client for `walk`. It reads settings of confluent-kafka from standard input."""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, Message, Producer

RECORDS = 1_000
TOPIC = "greetings"
LIMIT_S = 90.0


def main() -> int:
    """Produces records, consumes them, and compares both. Returns the exit status."""
    given = json.load(sys.stdin)
    sent = {f"hello {number}" for number in range(RECORDS)}
    produce({**given, "enable.idempotence": True}, sent)
    received = consume({**given, "group.id": "demo", "auto.offset.reset": "earliest"}, len(sent))
    if sorted(received) != sorted(sent):
        sys.stderr.write(
            f"{len(sent)} were sent, {len(received)} came, {len(set(received))} of them once\n"
        )
        return 1
    sys.stdout.write(f"produced and consumed {len(received)} records through the gateway\n")
    return 0


def produce(given: dict[str, object], values: set[str]) -> None:
    """Produces records. Raises `RuntimeError` where one is not acknowledged."""
    failed: list[str] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(str(error))

    producer = Producer(given)
    for value in values:
        producer.produce(TOPIC, value.encode(), on_delivery=on_delivery)
    left = producer.flush(LIMIT_S)
    if left or failed:
        message = f"{left} records without an answer, {len(failed)} refused: {failed[:1]}"
        raise RuntimeError(message)


def consume(given: dict[str, object], count: int) -> list[str]:
    """Consumes until there are `count` values, and whatever comes within a second after that."""
    consumer = Consumer(given)
    consumer.subscribe([TOPIC])
    values: list[str] = []
    deadline = time.monotonic() + LIMIT_S
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                if len(values) >= count:
                    break
                continue
            if message.error():
                sys.stderr.write(f"{message.error()}\n")
                continue
            values.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return values


if __name__ == "__main__":
    sys.exit(main())
