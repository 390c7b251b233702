"""The seam that every remote call of the control plane goes through, and what can go wrong there.

Installed around the clients themselves (the metadata store's handles, librdkafka's clients, the
removal of folders, PostgreSQL's commit, Celery's send, mail), so that no list of calls is kept by
hand: one pass records what an operation asks for, and each of these calls is then failed.
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

import orjson
from celery import current_app
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from django.core.mail import get_connection
from django.db import OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from kombu.exceptions import OperationalError as QueueAway

from brokers import _core, metadata
from brokers.errors import BrokerError, UnavailableError, UnknownOutcomeError
from provisioning import cells
from provisioning.kafka import Connection, Workers
from provisioning.kafka.worker import clients as kafka_clients
from provisioning.kafka.worker.errors import kafka_errors
from provisioning.kafka.worker.serving import CALLS

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


# A commit is not asked for again, nor is there one after its connection is gone.
NOT_OF_COMMITS = {Fault.LATE, Fault.TWICE, Fault.DEAF}
# All that there is where a call changes nothing: whoever asks gets no answer, or is no more.
OF_READS = {Fault.REFUSED, Fault.AWAY, Fault.KILLED_BEFORE}


class Killed(BaseException):
    """The process ends here: no handler of errors sees it."""


@dataclass(frozen=True)
class Call:
    """One call. `changes`: the store, or what PostgreSQL holds, was another behind it."""

    system: System
    name: str
    changes: bool


class Seam:
    """Records calls, and has the one that `arm` names go wrong."""

    def __init__(self, revision: Callable[[], int]) -> None:
        self.calls: list[Call] = []
        # Whether this thread is in a call: what happens then is the seam's.
        self.inside = False
        # What Celery's broker was given: task and arguments.
        self.queue: list[Message] = []
        # All that it was ever given.
        self.sent: list[Message] = []
        self._read_revision = revision
        self._at: int | None = None
        self._fault = Fault.REFUSED
        self._lasting: System | None = None
        self._late: list[Callable[[], object]] = []
        self.struck = False
        # Whether it is found out which calls change something.
        self.recording = False

    def arm(self, at: int, fault: Fault) -> None:
        """Has the call at this place, from now on, go wrong."""
        self.calls, self._at, self._fault, self.struck = [], at, fault, False

    def record(self, *, on: bool = True) -> None:
        """Forgets what was recorded; nothing goes wrong."""
        self.calls, self._at, self.struck, self.recording = [], None, False, on

    def heal(self) -> None:
        """Everything answers again; what was late arrives."""
        self._at = self._lasting = None
        late, self._late = self._late, []
        for perform in late:
            self._quietly(perform)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Inside, nothing is counted and nothing goes wrong: what the test itself does."""
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
        """Makes a call, or has it go wrong. `written`: whether a commit changes anything."""
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
        """Reads, and transactions that wrote nothing, leave all as it was."""
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
        """A delivery whose answer nobody hears."""
        with self.beside(), suppress(BrokerError, KafkaException, OSError):
            perform()


def _end_process() -> Killed:
    """Its connection goes with it, and what was not committed."""
    connection.close()
    return Killed()


def _has_written(connection: BaseDatabaseWrapper) -> bool:
    """Whether the transaction that is about to be committed changed anything."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
        row = cursor.fetchone()
    return bool(row and row[0])


def _lose_connection() -> OperationalError:
    """The server went away: what was not committed is not there."""
    raw = connection.connection
    if raw is not None:
        raw.close()
    return OperationalError("server closed the connection unexpectedly")


ERRORS: dict[System, tuple[Callable[[], BaseException], Callable[[], BaseException]]] = {
    System.METADATA: (
        lambda: UnavailableError("the store is away"),
        lambda: UnknownOutcomeError("the answer was lost"),
    ),
    System.KAFKA: (
        lambda: KafkaException(KafkaError(KafkaError._TRANSPORT)),
        lambda: KafkaException(KafkaError(KafkaError._TIMED_OUT)),
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
        # Handles that were opened before are not behind the seam.
        cells._open_store.cache_clear()
        stack.callback(cells._open_store.cache_clear)
        stack.enter_context(mock.patch.object(metadata, "_core", _Core(seam)))
        for name, kind in (("AdminClient", AdminClient), ("Producer", Producer)):
            made = _kafka_client(seam, name, kind)
            stack.enter_context(mock.patch.object(kafka_clients, name, made))
        made = _kafka_client(seam, "Consumer", Consumer)
        stack.enter_context(mock.patch.object(kafka_clients, "Consumer", made))
        stack.enter_context(mock.patch.object(Workers, "call", _call_here()))
        stack.enter_context(mock.patch.object(shutil, "rmtree", _removal(seam)))
        stack.enter_context(mock.patch.object(BaseDatabaseWrapper, "_commit", _commit(seam)))
        send = _send(seam)
        stack.enter_context(mock.patch.object(current_app.amqp, "send_task_message", send))
        mailer = type(get_connection())
        stack.enter_context(mock.patch.object(mailer, "send_messages", _mail(seam, mailer)))
        yield seam


class _Core:
    """The extension, with a metadata store behind the seam."""

    def __init__(self, seam: Seam) -> None:
        self.Metadata = lambda path: _Handle(seam, "", _core.Metadata(path))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (the extension's own)
        return getattr(_core, name)


class _Handle:
    """A handle of the metadata store; all of its calls carry their name."""

    def __init__(self, seam: Seam, of: str, real: Any) -> None:  # noqa: ANN401 (as above)
        self._seam, self._of, self._real = seam, of, real

    def call(self, text: str, *more: float) -> Any:  # noqa: ANN401 (as above)
        name = self._of + json.loads(text)["call"]
        return self._seam.call(System.METADATA, name, lambda: self._real.call(text, *more))

    def watch(self, *arguments: Any) -> Any:  # noqa: ANN401 (as above)
        return self._seam.call(System.METADATA, "watch", lambda: self._real.watch(*arguments))

    def cluster(self, *arguments: Any) -> _Handle:  # noqa: ANN401 (as above)
        """Reads nothing yet."""
        return _Handle(self._seam, "cluster.", self._real.cluster(*arguments))


def _call_here() -> Callable[..., Any]:
    """Makes a worker's calls in this process, where each of their requests is behind the seam."""
    clients: dict[Connection, kafka_clients.Access] = {}

    def call(
        workers: Workers,
        connection: Connection,
        name: str,
        *arguments: Any,  # noqa: ANN401 (the call's own)
        limit_s: float,
        **options: Any,  # noqa: ANN401 (as above)
    ) -> Any:  # noqa: ANN401 (JSON)
        del workers, limit_s
        access = clients.setdefault(connection, kafka_clients.Access(connection))
        with kafka_errors():
            result = CALLS[name](access, *arguments, **options)
        return orjson.loads(orjson.dumps(result, option=orjson.OPT_NON_STR_KEYS))

    return call


def _kafka_client(seam: Seam, kind: str, real: type) -> Callable[..., object]:
    def make(*arguments: Any) -> object:  # noqa: ANN401 (librdkafka's)
        return _KafkaClient(seam, kind, real(*arguments))

    return make


class _KafkaClient:
    """A client of librdkafka. Its answers are waited for inside of the seam."""

    def __init__(self, seam: Seam, kind: str, real: Any) -> None:  # noqa: ANN401 (as above)
        self._seam, self._kind, self._real = seam, kind, real

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (as above)
        found = getattr(self._real, name)
        if name in {"poll", "flush", "assignment", "close", "unsubscribe"}:
            return found  # it only takes in what came, or lets go

        def call(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401 (as above)
            def perform() -> Any:  # noqa: ANN401 (as above)
                answer = found(*arguments, **more)
                for future in answer.values() if isinstance(answer, dict) else [answer]:
                    if hasattr(future, "exception"):
                        future.exception()
                if name == "produce":
                    self._real.flush(30)
                return answer

            return self._seam.call(System.KAFKA, f"{self._kind}.{name}", perform)

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
        del producer, options
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
