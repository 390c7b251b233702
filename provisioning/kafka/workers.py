"""The pool of worker processes, which read what brokers send.

Some bytes that a tenant may send make librdkafka end its process, and others make its Python
binding do so. So every call runs in a worker: a process that belongs to one connection and makes
one call at a time. Such bytes end that call and nothing else. A worker that made its call is kept
for the next one on that connection, because new clients cost a handshake. After a while without a
call it ends by itself.

Workers are forked by a fork server (`worker/__main__.py`), which has loaded the libraries and
started no thread: a fork takes milliseconds, and copies nothing of this process.
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
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
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

# How many idle workers are kept. Of more, those that have been idle longest are ended.
KEPT_MAX = 64
# How many calls may be made at a time, live tails included: of all clusters together, and of one.
CALLS_MAX = 256
CALLS_MAX_CLUSTER = 32
# The environment variables that a worker gets. The others of this process may hold secrets. By the
# last one a supervisor recognises its processes.
ENVIRONMENT = ("LANG", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "FRESHET_RUN")
# A fork server that accepts no socket for this long is replaced.
START_TIMEOUT_S = 5.0
# How many workers a call is offered to: a kept worker may be about to end, and not begin the call.
ATTEMPTS = 3


@dataclass(eq=False)
class _Worker:
    """A worker, by this process's end of its socket."""

    connection: Connection
    socket: socket.socket

    def close(self) -> None:
        """Closes the socket, which ends the worker, at the latest when its call's time is over."""
        self.socket.close()


@dataclass
class _Exchange:
    """A call that a worker makes. `first` is its first answer until that was taken."""

    worker: _Worker
    limit_s: float
    first: dict[str, Any] | None
    # Whether the call has ended in order, so that the worker may make another one.
    finished: bool = False

    def next_answer(self) -> dict[str, Any]:
        """The next answer. Raises the `KafkaCallError` that ended the call, if one did."""
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
        raise WorkerDiedError("WORKER_DIED", "its answer has an unknown form")


class _NotBegunError(Exception):
    """The worker ended before it read the request, so another one may get it."""


@dataclass
class _ForkServer:
    """The process that forks workers. It is started for the first one, and again if it ended."""

    _process: subprocess.Popen[bytes] | None = None
    _control: socket.socket | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fork(self, connection: Connection) -> _Worker:
        """Forks a new worker. Raises `WorkersBusyError` where that fails."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                try:
                    self._send_socket(theirs)
                except OSError:
                    # The fork server had ended, as by an operator's kill: start another one.
                    self._stop_process()
                    self._send_socket(theirs)
            except OSError as error:
                ours.close()
                name = "WORKER_NOT_STARTED"
                raise WorkersBusyError(name, f"no process could be started: {error}") from error
        return _Worker(connection, ours)

    def close(self) -> None:
        """Ends the fork server. Existing workers go on."""
        with self._lock:
            self._stop_process()

    def forget(self) -> None:
        """Closes the socket of the fork server, which belongs to the parent of this process."""
        if self._control is not None:
            self._control.close()

    def _send_socket(self, theirs: socket.socket) -> None:
        if self._control is None:
            self._start_process()
        if self._control is not None:
            socket.send_fds(self._control, [b"f"], [theirs.fileno()])

    def _start_process(self) -> None:
        self._control, theirs = socket.socketpair()
        self._control.settimeout(START_TIMEOUT_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "provisioning.kafka.worker"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            )

    def _stop_process(self) -> None:
        control, process = self._control, self._process
        self._control = self._process = None
        if control is not None:
            control.close()
        if process is not None:
            process.kill()
            process.wait()


@dataclass
class Workers:
    """The pool of this process's workers. It is thread-safe."""

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
        on_item: Callable[[Any], None] = lambda _: None,
        **options: object,
    ) -> Any:  # noqa: ANN401 (JSON)
        """Makes a call in a worker. Returns its result as JSON has it.

        `on_item` gets what the call announces before its result. Raises the `KafkaCallError` that
        the call raised in the worker, `UnavailableError` where no answer came within `limit_s`
        seconds, `WorkerDiedError` and `WorkersBusyError`.
        """
        deadline = time.monotonic() + limit_s
        with self._started_call(Request(connection, name, arguments, options, limit_s)) as exchange:
            while "item" in (answer := exchange.next_answer()):
                if time.monotonic() >= deadline:
                    raise _timed_out(limit_s)
                on_item(answer["item"])
            return answer.get("result")

    def stream(
        self,
        connection: Connection,
        name: str,
        *arguments: object,
        limit_s: float,
        **options: object,
    ) -> Generator[Any]:
        """Makes a call that yields items, each within `limit_s` seconds of the one before.

        Raises as `call`. Closing the generator early ends the worker.
        """
        with self._started_call(Request(connection, name, arguments, options, limit_s)) as exchange:
            while "item" in (answer := exchange.next_answer()):
                yield answer["item"]

    def close(self) -> None:
        """Ends all idle workers and the fork server."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()
        self._server.close()

    def forget(self) -> None:
        """Closes the sockets that this forked process inherited from its parent."""
        for worker in self._idle:
            worker.close()
        self._server.forget()

    def __len__(self) -> int:
        """How many workers are idle."""
        with self._lock:
            return len(self._idle)

    @contextlib.contextmanager
    def _started_call(self, request: Request) -> Iterator[_Exchange]:
        connection = request.connection
        with self._lock:
            calls, of_cluster = self._calls.total(), self._calls[connection]
            if calls >= self.calls_max or of_cluster >= self.calls_max_cluster:
                name = "TOO_MANY_CALLS"
                raise WorkersBusyError(name, f"{calls} calls are made, {of_cluster} of the cluster")
            self._calls[connection] += 1
        try:
            exchange = self._start_call(request)
            try:
                yield exchange
            finally:
                self._return_worker(exchange.worker, reusable=exchange.finished)
        finally:
            with self._lock:
                self._calls[connection] -= 1
                if not self._calls[connection]:
                    del self._calls[connection]

    def _start_call(self, request: Request) -> _Exchange:
        for attempt in range(ATTEMPTS):
            # The last attempt uses a new worker, which does not end before its first call.
            worker = self._borrow_worker(request.connection, kept=attempt < ATTEMPTS - 1)
            try:
                return _Exchange(worker, request.limit_s, _first_answer(worker, request))
            except _NotBegunError:
                worker.close()
            except BaseException:
                worker.close()
                raise
        name = "WORKER_DIED"
        raise WorkerDiedError(name, "its processes ended before they began")

    def _borrow_worker(self, connection: Connection, *, kept: bool) -> _Worker:
        if kept:
            with self._lock:
                for worker in reversed(self._idle):
                    if worker.connection == connection:
                        self._idle.remove(worker)
                        return worker
        return self._server.fork(connection)

    def _return_worker(self, worker: _Worker, *, reusable: bool) -> None:
        if not reusable:
            worker.close()
            return
        with self._lock:
            self._idle.append(worker)
            ended = [idle for idle in self._idle if _has_ended(idle)]
            self._idle = [idle for idle in self._idle if idle not in ended]
            surplus = self._idle[: max(len(self._idle) - self.kept_max, 0)]
            del self._idle[: len(surplus)]
        for unneeded in (*ended, *surplus):
            unneeded.close()


def _first_answer(worker: _Worker, request: Request) -> dict[str, Any]:
    """Sends the request and waits for an answer. Raises `_NotBegunError` where the worker ended."""
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
    """Whether an idle worker has ended: nothing else makes its socket readable."""
    # `select` fails for file descriptors of 1024 and above; `poll` does not.
    readable = select.poll()
    readable.register(worker.socket, select.POLLIN)
    return bool(readable.poll(0))


_shared: Workers | None = None
_shared_lock = threading.Lock()


def shared_workers() -> Workers:
    """The pool of this process, which is created at the first call."""
    global _shared  # noqa: PLW0603 (one a process)
    with _shared_lock:
        if _shared is None:
            _shared = Workers()
        return _shared


def _forget_after_fork() -> None:
    """Drops the pool in a forked child, because only its parent may use the sockets."""
    global _shared, _shared_lock
    if _shared is not None:
        _shared.forget()
    _shared, _shared_lock = None, threading.Lock()


def _close_at_exit() -> None:
    if _shared is not None:
        _shared.close()


os.register_at_fork(after_in_child=_forget_after_fork)
atexit.register(_close_at_exit)
