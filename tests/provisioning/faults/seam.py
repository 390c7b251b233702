"""The seam that every remote call of the control plane goes through, and what can go wrong there.

The seam is installed around the clients themselves: the metadata store's handles, our Kafka
clients, the removal of folders, PostgreSQL's commit, Celery's send and mail. Nobody has to keep a
list of calls by hand: one run of an operation records its calls, and later runs fail each of them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar
from unittest import mock

import psycopg
from celery import current_app
from django.core.mail import get_connection
from django.db import OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from kombu.exceptions import OperationalError as QueueAway

from brokers import _core, metadata
from brokers.errors import BrokerError, UnavailableError, UnknownOutcomeError
from provisioning import cells
from provisioning.kafka import clients as kafka_clients
from tests.supervisor.run import wait_until

T = TypeVar("T")
# A task and its arguments.
Message = tuple[str, dict[str, Any]]


class System(Enum):
    """What is called."""

    METADATA = "metadata"
    KAFKA = "kafka"
    STORAGE = "storage"
    DATABASE = "database"
    QUEUE = "queue"
    MAIL = "mail"


class Fault(Enum):
    """What goes wrong with one call, or from one call on."""

    # It fails before it took effect, and says so.
    REFUSED = "refused"
    # It takes effect, and its reply is lost.
    LOST = "lost"
    # It hangs until the caller gives up, and takes effect after that.
    LATE = "late"
    # It is delivered twice, and the second answer counts.
    TWICE = "twice"
    # The process dies before it, or behind it.
    KILLED_BEFORE = "killed before"
    KILLED_BEHIND = "killed behind"
    # As the first two, and so does every later call of that system until `heal`.
    AWAY = "away"
    DEAF = "deaf"


# Commits cannot be late or come twice, since nothing sends a commit again; nor can later ones lose
# their answers, since none is sent over a lost connection.
NOT_OF_COMMITS = {Fault.LATE, Fault.TWICE, Fault.DEAF}
# The faults that differ for a call that changes nothing: the caller gets no answer, or has died.
OF_READS = {Fault.REFUSED, Fault.AWAY, Fault.KILLED_BEFORE}


class Killed(BaseException):
    """The process ends here: no handler of errors sees it."""


@dataclass(frozen=True)
class Call:
    """One call. `changes` says whether the store or the database differed after it."""

    system: System
    name: str
    changes: bool


class Seam:
    """Records calls, and makes the one go wrong that `arm` names."""

    def __init__(self, revision: Callable[[], int]) -> None:
        self.calls: list[Call] = []
        # Whether a call runs now: further calls that it makes are part of it, and not counted.
        self.inside = False
        # The messages that wait in Celery's broker.
        self.queue: list[Message] = []
        # All messages that were ever sent to it.
        self.sent: list[Message] = []
        self._read_revision = revision
        self._at: int | None = None
        self._fault = Fault.REFUSED
        self._lasting: System | None = None
        self._late: list[Callable[[], object]] = []
        self.struck = False
        # Whether the seam compares the stores before and after each call, to see what changes them.
        self.recording = False

    def arm(self, at: int, fault: Fault) -> None:
        """Makes the call with number `at` (from 0, counted from now on) go wrong."""
        self.calls, self._at, self._fault, self.struck = [], at, fault, False

    def record(self, *, on: bool = True) -> None:
        """Forgets the recorded calls and the fault. Calls are recorded anew where `on` is true."""
        self.calls, self._at, self.struck, self.recording = [], None, False, on

    def heal(self) -> None:
        """Makes every system answer again, and performs the calls that were late."""
        self._at = self._lasting = None
        late, self._late = self._late, []
        for perform in late:
            self._quietly(perform)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Makes calls of the block the test's own: they are not counted and never go wrong."""
        inside, self.inside = self.inside, True
        try:
            yield
        finally:
            self.inside = inside

    def call(
        self,
        system: System,
        name: str,
        perform: Callable[[], T],
        written: Callable[[], bool] = lambda: False,
    ) -> T:
        """Makes a call, or makes it go wrong. `written` returns whether a commit changes rows."""
        if self.inside:
            return perform()
        place = len(self.calls)
        fault = self._due(place, system)
        before = self._revision() if self.recording else 0
        changed = self.recording and written()
        self.inside = True
        try:
            return self._perform(system, fault, perform)
        finally:
            self.inside = False
            changes = self._changed(system, before, changed)
            self.calls.append(Call(system, name, changes))

    def _revision(self) -> int:
        with self.beside():
            return self._read_revision()

    def _changed(self, system: System, before: int, written: bool) -> bool:
        """Returns whether the call changed something: reads and empty transactions do not."""
        match system:
            case System.METADATA:
                return self.recording and self._revision() != before
            case System.DATABASE:
                return written
        return True

    def _due(self, place: int, system: System) -> Fault | None:
        if self._lasting is system:
            return self._fault
        if place != self._at:
            return None
        self.struck = True
        if self._fault in {Fault.AWAY, Fault.DEAF}:
            self._lasting = system
        return self._fault

    def _perform(self, system: System, fault: Fault | None, perform: Callable[[], T]) -> T:
        refused, unanswered = ERRORS[system]
        match fault:
            case Fault.REFUSED | Fault.AWAY:
                raise refused()
            case Fault.LOST | Fault.DEAF:
                perform()
                raise unanswered()
            case Fault.LATE:
                self._late.append(perform)
                raise unanswered()
            case Fault.TWICE:
                self._quietly(perform)
            case Fault.KILLED_BEFORE:
                raise _end_process()
            case Fault.KILLED_BEHIND:
                perform()
                raise _end_process()
        return perform()

    def _quietly(self, perform: Callable[[], object]) -> None:
        """Performs a call whose answer, or error, reaches nobody."""
        with self.beside(), suppress(BrokerError, OSError):
            perform()


def _end_process() -> Killed:
    """Closes the database connection, whose open transaction is lost, and returns the exception
    that ends the process.
    """
    _end_backend()
    connection.close()
    return Killed()


def _end_backend() -> None:
    """Closes the connection beneath Django, and waits until its server process has ended.

    That process holds the locks of the lost transaction until it has noticed: a request that is
    repeated at once would still meet them.
    """
    raw = connection.connection
    if raw is None or raw.closed:
        return
    backend = raw.info.backend_pid
    raw.close()
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as beside:
        running = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        wait_until(
            lambda: beside.execute(running, [backend]).fetchone() is None,
            f"the server process {backend} has ended",
        )


def _has_written(connection: BaseDatabaseWrapper) -> bool:
    """Whether the transaction that is about to be committed changed anything."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
        row = cursor.fetchone()
    return bool(row and row[0])


def _lose_connection() -> OperationalError:
    """Closes the connection as a server that goes away does, and returns the error for it."""
    _end_backend()
    return OperationalError("server closed the connection unexpectedly")


def _kafka_error(kind: str) -> _core.KafkaError:
    error = _core.KafkaError("no answer")
    error.kind = kind
    return error


ERRORS: dict[System, tuple[Callable[[], BaseException], Callable[[], BaseException]]] = {
    System.METADATA: (
        lambda: UnavailableError("the store is away"),
        lambda: UnknownOutcomeError("the answer was lost"),
    ),
    System.KAFKA: (
        lambda: _kafka_error("unreachable"),
        lambda: _kafka_error("timed_out"),
    ),
    System.STORAGE: (lambda: OSError(5, "input/output error"), lambda: TimeoutError("gone")),
    System.DATABASE: (_lose_connection, _lose_connection),
    System.QUEUE: (lambda: QueueAway("away"), lambda: QueueAway("no answer")),
    System.MAIL: (lambda: OSError(111, "refused"), lambda: TimeoutError("no answer")),
}


@contextmanager
def installed(seam: Seam) -> Iterator[Seam]:
    """Puts the seam around every client until the end of the block."""
    with ExitStack() as stack:
        # Handles that were opened before would not be behind the seam.
        cells._open_store.cache_clear()
        stack.callback(cells._open_store.cache_clear)
        stack.enter_context(mock.patch.object(metadata, "_core", _Core(seam)))
        # A client that exists already would not be behind the seam either, nor outlive it.
        stack.enter_context(mock.patch.object(kafka_clients, "_shared", None))
        stack.enter_context(mock.patch.object(kafka_clients, "_core", _KafkaCore(seam)))
        stack.enter_context(mock.patch.object(shutil, "rmtree", _removal(seam)))
        stack.enter_context(mock.patch.object(BaseDatabaseWrapper, "_commit", _commit(seam)))
        send = _send(seam)
        stack.enter_context(mock.patch.object(current_app.amqp, "send_task_message", send))
        mailer = type(get_connection())
        stack.enter_context(mock.patch.object(mailer, "send_messages", _mail(seam, mailer)))
        yield seam


class _Core:
    """Our extension module, whose metadata store is behind the seam."""

    def __init__(self, seam: Seam) -> None:
        self.Metadata = lambda path: _Handle(seam, "", _core.Metadata(path))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (the extension's own)
        return getattr(_core, name)


class _Handle:
    """A handle of the metadata store. The JSON text of a call has the call's name."""

    def __init__(self, seam: Seam, of: str, real: Any) -> None:  # noqa: ANN401 (as above)
        self._seam, self._of, self._real = seam, of, real

    def call(self, text: str, *more: float) -> Any:  # noqa: ANN401 (as above)
        name = self._of + json.loads(text)["call"]
        return self._seam.call(System.METADATA, name, lambda: self._real.call(text, *more))

    def watch(self, *arguments: Any) -> Any:  # noqa: ANN401 (as above)
        return self._seam.call(System.METADATA, "watch", lambda: self._real.watch(*arguments))

    def cluster(self, *arguments: Any) -> _Handle:  # noqa: ANN401 (as above)
        """Returns a handle of a cluster's metadata. This is no call: it reads nothing yet."""
        return _Handle(self._seam, "cluster.", self._real.cluster(*arguments))


class _KafkaCore:
    """Our extension module, whose Kafka clients are behind the seam."""

    def __init__(self, seam: Seam) -> None:
        self._seam = seam

    def KafkaClient(self, *arguments: Any, **more: Any) -> _KafkaClient:  # noqa: ANN401, N802
        """Returns a client. This is no call: it connects when it is first used."""
        return _KafkaClient(self._seam, _core.KafkaClient(*arguments, **more))


class _KafkaClient:
    """A Kafka client whose calls go through the seam."""

    def __init__(self, seam: Seam, real: _core.KafkaClient) -> None:
        self._seam, self._real = seam, real

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (the extension's own)
        method = getattr(self._real, name)

        def call(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401 (as above)
            perform = lambda: method(*arguments, **more)  # noqa: E731
            return self._seam.call(System.KAFKA, f"KafkaClient.{name}", perform)

        return call


def _removal(seam: Seam) -> Callable[..., None]:
    real = shutil.rmtree

    def rmtree(*arguments: Any, **more: Any) -> None:  # noqa: ANN401 (as above)
        seam.call(System.STORAGE, "rmtree", lambda: real(*arguments, **more))

    return rmtree


def _commit(seam: Seam) -> Callable[[Any], None]:
    real = vars(BaseDatabaseWrapper)["_commit"]

    def commit(self: Any) -> None:  # noqa: ANN401 (Django's)
        name = "commit" if self is connections[self.alias] else "commit beside"
        seam.call(System.DATABASE, name, lambda: real(self), lambda: _has_written(self))

    return commit


def _send(seam: Seam) -> Callable[..., None]:
    def send(producer: object, name: str, message: Any, **options: Any) -> None:  # noqa: ANN401
        sent: Message = (name, dict(message.body[1]))

        def take() -> None:
            seam.queue.append(sent)
            seam.sent.append(sent)

        seam.call(System.QUEUE, name, take)

    return send


def _mail(seam: Seam, mailer: Any) -> Callable[..., int]:  # noqa: ANN401 (Django's)
    real = mailer.send_messages

    def send_messages(self: Any, messages: Any) -> int:  # noqa: ANN401 (Django's)
        return seam.call(System.MAIL, "send", lambda: int(real(self, messages) or 0))

    return send_messages
