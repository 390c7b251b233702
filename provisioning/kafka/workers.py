"""Processes that read what brokers send, so that bytes of a tenant can end nothing but one call.

librdkafka ends its process on some bytes that a tenant may send, and its Python binding on others.
So every call runs in a worker: a process that belongs to one connection and makes one call at a
time. A worker that made its call is kept for the next one on that connection, because its clients
cost a handshake; after a while without a call it ends by itself.

Workers are forked by a server of their own (`worker/__main__.py`), which has the libraries loaded
and no thread yet: a fork takes milliseconds, and takes along nothing of this process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from provisioning.kafka.connection import Connection
from provisioning.kafka.errors import (
    ANSWERED,
    UnavailableError,
    WorkerDiedError,
    WorkersBusyError,
)
from provisioning.kafka.frames import Request, receive_answer, send_request

# Idle workers that are kept; the one that has been idle for longest goes first.
KEPT_MAX = 64
# Calls that may be on their way at a time, those of live tails included: of all clusters together,
# and of one.
CALLS_MAX = 256
CALLS_MAX_CLUSTER = 32
# All that a worker needs of this process's environment, in which there may be secrets. The last is
# what a supervisor knows its processes by.
ENVIRONMENT = ("LANG", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "FRESHET_RUN")
# A server that takes no socket for so long is replaced.
START_TIMEOUT_S = 5.0
# A call that a kept worker did not begin, because it was about to end, is asked again.
ATTEMPTS = 3


@dataclass(eq=False)
class _Worker:
    """This process's end of a worker's socket."""

    connection: Connection
    socket: socket.socket

    def close(self) -> None:
        """The worker ends when it sees that, at the latest when its call's time is over."""
        self.socket.close()


@dataclass
class _Exchange:
    """A call on its way: who makes it, and what was answered and not taken yet."""

    worker: _Worker
    limit_s: float
    first: dict[str, Any] | None
    # Whether the worker may make another call.
    finished: bool = False

    def take(self) -> dict[str, Any]:
        """The next answer. Raises the error that ended the call, if one did."""
        answer, self.first = self.first, None
        if answer is None:
            answer = _next_answer(self.worker, self.limit_s)
        match answer:
            case {"item": _}:
                return answer
            case {"result": _} | {"end": _}:
                self.finished = True
                return answer
            case {"error": {"kind": str(kind), "name": str(name), "detail": str(detail)}} if (
                kind in ANSWERED
            ):
                self.finished = True
                raise ANSWERED[kind](name, detail)
        raise WorkerDiedError("WORKER_DIED", "its answer is none that it may give")


class _NotBegunError(Exception):
    """The worker ended before it read the request."""


@dataclass
class _ForkServer:
    """The process that forks workers. It is started with the first, and anew where it ended."""

    _process: subprocess.Popen[bytes] | None = None
    _control: socket.socket | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fork(self, connection: Connection) -> _Worker:
        """A new worker. Raises `WorkersBusyError` where none can be made."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                try:
                    self._send(theirs)
                except OSError:
                    # It ended, as by an operator's kill, before it got this one.
                    self._stop()
                    self._send(theirs)
            except OSError as error:
                ours.close()
                name = "WORKER_NOT_STARTED"
                raise WorkersBusyError(name, f"no process could be started: {error}") from error
        return _Worker(connection, ours)

    def close(self) -> None:
        """Ends it, without a word to the workers that there are."""
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """Lets go of another process's server, whose child this one is not."""
        if self._control is not None:
            self._control.close()

    def _send(self, theirs: socket.socket) -> None:
        if self._control is None:
            self._start()
        if self._control is not None:
            socket.send_fds(self._control, [b"f"], [theirs.fileno()])

    def _start(self) -> None:
        self._control, theirs = socket.socketpair()
        self._control.settimeout(START_TIMEOUT_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "provisioning.kafka.worker"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            )

    def _stop(self) -> None:
        control, process = self._control, self._process
        self._control = self._process = None
        if control is not None:
            control.close()
        if process is not None:
            process.kill()
            process.wait()


@dataclass
class Workers:
    """The workers of this process. Thread-safe."""

    kept_max: int = KEPT_MAX
    calls_max: int = CALLS_MAX
    calls_max_cluster: int = CALLS_MAX_CLUSTER
    _idle: list[_Worker] = field(default_factory=list)
    _calls: Counter[Connection] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: _ForkServer = field(default_factory=_ForkServer)

    def call(
        self,
        connection: Connection,
        name: str,
        *arguments: object,
        limit_s: float,
        **options: object,
    ) -> Any:  # noqa: ANN401 (JSON)
        """The result of one call, as JSON has it.

        Raises `KafkaCallError`: what the call raised in the worker, `UnavailableError` where no
        answer came within `limit_s` seconds, `WorkerDiedError` and `WorkersBusyError`.
        """
        with self._asked(Request(connection, name, arguments, options, limit_s)) as exchange:
            return exchange.take().get("result")

    def stream(
        self,
        connection: Connection,
        name: str,
        *arguments: object,
        limit_s: float,
        **options: object,
    ) -> Generator[Any]:
        """What a call gives bit by bit, each within `limit_s` seconds of the one before.

        Raises as `call`. Whoever closes it early ends the worker.
        """
        with self._asked(Request(connection, name, arguments, options, limit_s)) as exchange:
            while "item" in (answer := exchange.take()):
                yield answer["item"]

    def close(self) -> None:
        """Ends all workers that make no call, and the server that forks them."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()
        self._server.close()

    def forget(self) -> None:
        """Lets go of what belongs to the parent of this forked process."""
        for worker in self._idle:
            worker.close()
        self._server.forget()

    def __len__(self) -> int:
        """How many workers are idle."""
        with self._lock:
            return len(self._idle)

    @contextlib.contextmanager
    def _asked(self, request: Request) -> Iterator[_Exchange]:
        connection = request.connection
        with self._lock:
            calls, of_cluster = self._calls.total(), self._calls[connection]
            if calls >= self.calls_max or of_cluster >= self.calls_max_cluster:
                name = "TOO_MANY_CALLS"
                raise WorkersBusyError(name, f"{calls} calls are made, {of_cluster} of the cluster")
            self._calls[connection] += 1
        try:
            exchange = self._ask(request)
            try:
                yield exchange
            finally:
                self._give_back(exchange.worker, reusable=exchange.finished)
        finally:
            with self._lock:
                self._calls[connection] -= 1
                if not self._calls[connection]:
                    del self._calls[connection]

    def _ask(self, request: Request) -> _Exchange:
        for attempt in range(ATTEMPTS):
            # The last attempt is a new worker's, which has no reason to end.
            worker = self._borrow(request.connection, kept=attempt < ATTEMPTS - 1)
            try:
                return _Exchange(worker, request.limit_s, _first_answer(worker, request))
            except _NotBegunError:
                worker.close()
            except BaseException:
                worker.close()
                raise
        name = "WORKER_DIED"
        raise WorkerDiedError(name, "its processes ended before they began")

    def _borrow(self, connection: Connection, *, kept: bool) -> _Worker:
        if kept:
            with self._lock:
                for worker in reversed(self._idle):
                    if worker.connection == connection:
                        self._idle.remove(worker)
                        return worker
        return self._server.fork(connection)

    def _give_back(self, worker: _Worker, *, reusable: bool) -> None:
        if not reusable:
            worker.close()
            return
        with self._lock:
            self._idle.append(worker)
            ended = [each for each in self._idle if _has_ended(each)]
            self._idle = [each for each in self._idle if each not in ended]
            surplus = self._idle[: max(len(self._idle) - self.kept_max, 0)]
            del self._idle[: len(surplus)]
        for each in (*ended, *surplus):
            each.close()


def _first_answer(worker: _Worker, request: Request) -> dict[str, Any]:
    """Asks. Raises `_NotBegunError` where the worker said that it had ended."""
    try:
        worker.socket.settimeout(request.limit_s)
        send_request(worker.socket, request)
    except TimeoutError:
        raise _timed_out(request.limit_s) from None
    except OSError as error:
        raise _NotBegunError from error
    answer = _next_answer(worker, request.limit_s)
    if "bye" in answer:
        raise _NotBegunError
    return answer


def _next_answer(worker: _Worker, limit_s: float) -> dict[str, Any]:
    try:
        answer = receive_answer(worker.socket, limit_s)
    except TimeoutError:
        raise _timed_out(limit_s) from None
    except (OSError, ValueError) as error:
        name = "WORKER_DIED"
        raise WorkerDiedError(name, f"its answer cannot be read: {error}") from error
    if answer is None:
        name = "WORKER_DIED"
        raise WorkerDiedError(name, "the process that read the brokers' answer ended")
    return answer


def _timed_out(limit_s: float) -> UnavailableError:
    return UnavailableError("REQUEST_TIMED_OUT", f"no answer within {limit_s:g} s")


def _has_ended(worker: _Worker) -> bool:
    """Whether an idle worker said so, or is gone: nothing else makes its socket readable."""
    # Unlike `select` it takes handles of any number.
    readable = select.poll()
    readable.register(worker.socket, select.POLLIN)
    return bool(readable.poll(0))


_shared: Workers | None = None
_shared_lock = threading.Lock()


def shared_workers() -> Workers:
    """The workers of this process, made when first needed."""
    global _shared  # noqa: PLW0603 (one a process)
    with _shared_lock:
        if _shared is None:
            _shared = Workers()
        return _shared


def _forget_after_fork() -> None:
    """A child has its parent's sockets, which only the parent may use."""
    global _shared, _shared_lock
    if _shared is not None:
        _shared.forget()
    _shared, _shared_lock = None, threading.Lock()


def _close_at_exit() -> None:
    if _shared is not None:
        _shared.close()


os.register_at_fork(after_in_child=_forget_after_fork)
atexit.register(_close_at_exit)
