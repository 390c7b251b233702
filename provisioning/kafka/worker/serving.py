"""Answers the calls that arrive at a socket, one after the other."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable, Generator
from typing import Any

from confluent_kafka import KafkaException

from provisioning.kafka.errors import KafkaCallError, RefusedError
from provisioning.kafka.frames import Request, TooLargeError, receive_request, send_answer
from provisioning.kafka.worker import (
    deleting,
    effective,
    groups,
    messages,
    offsets,
    reset,
    tail,
)
from provisioning.kafka.worker.clients import Access
from provisioning.kafka.worker.errors import error_of

# A worker that is asked nothing for so long ends.
IDLE_S = 60.0
# Whoever asks gives up first, and says why; this ends a worker that hangs in librdkafka.
GRACE_S = 1.0

CALLS: dict[str, Callable[..., Any]] = {
    call.__name__: call
    for call in (
        deleting.delete_records,
        effective.wait_acls,
        effective.wait_topic,
        effective.wait_user,
        groups.delete_group,
        groups.describe_group,
        groups.describe_groups,
        groups.list_group_names,
        groups.sample_groups,
        messages.browse,
        messages.produce,
        offsets.end_offset,
        reset.reset_offsets,
        tail.tail,
    )
}


def serve(connection: socket.socket, idle_s: float = IDLE_S) -> None:
    """Until the other end is closed, or nothing was asked for `idle_s` seconds."""
    access: Access | None = None
    while select.select([connection], [], [], idle_s)[0]:
        request = receive_request(connection)
        if request is None:
            return
        access = access or Access(request.connection)
        try:
            _answer(connection, access, request)
        except ConnectionError:
            return  # whoever asked has gone
    # A request that comes now is asked again elsewhere.
    send_answer(connection, bye=True)


def _answer(connection: socket.socket, access: Access, request: Request) -> None:
    # By its default action the signal ends the process, whatever it is in.
    signal.setitimer(signal.ITIMER_REAL, request.limit_s + GRACE_S)
    try:
        result = CALLS[request.name](access, *request.arguments, **request.options)
        if isinstance(result, Generator):
            for item in result:
                # Whoever does not read what there is may take any time.
                signal.setitimer(signal.ITIMER_REAL, 0)
                send_answer(connection, item=item)
                signal.setitimer(signal.ITIMER_REAL, request.limit_s + GRACE_S)
            answer: dict[str, object] = {"end": True}
        else:
            answer = {"result": result}
    except KafkaCallError as error:
        answer = _failure(error)
    except KafkaException as error:
        answer = _failure(error_of(error.args[0]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        send_answer(connection, **answer)
    except TooLargeError as error:
        send_answer(connection, **_failure(RefusedError("ANSWER_TOO_LARGE", str(error))))


def _failure(error: KafkaCallError) -> dict[str, object]:
    told = {"kind": type(error).__name__, "name": error.name, "detail": error.detail}
    return {"error": told}
