"""Answers the requests that arrive on a worker's socket, one after the other."""

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
    heads,
    judging,
    messages,
    offsets,
    reset,
    tail,
)
from provisioning.kafka.worker.clients import KafkaClients
from provisioning.kafka.worker.errors import error_of

# A worker that gets no request for this long ends.
IDLE_S = 60.0
# The worker's timer runs longer than its caller waits, so the caller gives up first and reports
# why. The timer ends a worker that hangs in librdkafka.
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
        heads.next_head,
        judging.judge,
        messages.browse,
        messages.produce,
        offsets.end_offset,
        reset.reset_offsets,
        tail.tail,
    )
}


def serve_calls(connection: socket.socket, idle_s: float = IDLE_S) -> None:
    """Answers requests until the caller closes the socket or sends none for `idle_s` seconds.

    It also ends after a call that left a client behind which may hang.
    """
    access: KafkaClients | None = None
    while select.select([connection], [], [], idle_s)[0]:
        request = receive_request(connection)
        if request is None:
            return
        access = access or KafkaClients(
            request.connection, announce=lambda item: send_answer(connection, item=item)
        )
        try:
            _answer_request(connection, access, request)
        except ConnectionError:
            return  # the caller has closed the socket
        if access.tainted:
            break
    # Announces the end, so that the caller sends a request that comes now to another worker.
    send_answer(connection, bye=True)


def _answer_request(connection: socket.socket, access: KafkaClients, request: Request) -> None:
    # SIGALRM has its default action: it ends the process, even within librdkafka.
    signal.setitimer(signal.ITIMER_REAL, request.limit_s + GRACE_S)
    try:
        result = CALLS[request.name](access, *request.arguments, **request.options)
        if isinstance(result, Generator):
            for item in result:
                # The timer stops while the caller may take its time to read.
                signal.setitimer(signal.ITIMER_REAL, 0)
                send_answer(connection, item=item)
                signal.setitimer(signal.ITIMER_REAL, request.limit_s + GRACE_S)
            answer: dict[str, object] = {"end": True}
        else:
            answer = {"result": result}
    except KafkaCallError as error:
        answer = _failure_answer(error)
    except KafkaException as error:
        answer = _failure_answer(error_of(error.args[0]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        send_answer(connection, **answer)
    except TooLargeError as error:
        send_answer(connection, **_failure_answer(RefusedError("ANSWER_TOO_LARGE", str(error))))


def _failure_answer(error: KafkaCallError) -> dict[str, object]:
    content = {"kind": type(error).__name__, "name": error.name, "detail": error.detail}
    return {"error": content}
