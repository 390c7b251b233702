"""The transaction of a request or task, which is interrupted whenever it waits.

A request's queries run in one transaction, and so do those of a part of a task or of a command
(`task_transaction`); what is said of requests here holds for them too. Before it waits for anything
but PostgreSQL, that transaction is committed and its connection is given back, and the next query
begins another one in the same tenancy scope. So nobody holds a connection, a row or a lock of
PostgreSQL while a cluster, a store, a password hash or a pause takes its time.

What was written stays when a transaction is interrupted, so a request reads first, then waits, then
writes. `outside_transaction` refuses to wait behind a write (or a locked row): a request that fails
afterwards could not take it back. A request that wants it so says `commit_so_far`. A task says it
of what it intends to do: one that dies while it waits is repeated, and goes on from there.

In any other transaction, such as one that a task begins by a tenancy scope, nothing may wait.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from django.db import connection, transaction

from console.base.common.ids import new_id

logger = logging.getLogger(__name__)

# How a statement begins, in Django's spelling, that writes, and what one has that locks rows.
WRITES = ("INSERT", "UPDATE", "DELETE", "MERGE", "WITH")
LOCKS = (" FOR UPDATE", " FOR NO KEY UPDATE")
# The variable of PostgreSQL's session by which row-level security knows the tenancy scope.
SCOPE_SETTING = "freshet.organization"
# Whether a wait within a transaction raises. Otherwise it is logged, and the connection is held.
# Tests set it: a fault of ours must not fail a customer's request.
strict = False


class WaitInTransaction(RuntimeError):
    """The program waits, or is about to wait, within a transaction."""


class _Interruptible(Protocol):
    """What this module uses of `console.base.common.database.base.DatabaseWrapper`."""

    @property
    def interrupted(self) -> bool: ...

    def interrupt(self, *, resumed: Callable[[], None], keeps_connection: bool) -> None: ...


class Turn(Protocol):
    """What this module uses of `console.base.common.turns.RequestTurn`."""

    def pause(self) -> None:
        """Gives the turn back while the request waits for something."""

    def resume(self, *, first: bool = True) -> None:
        """Takes a turn again, `first` before requests that have not begun."""

    def compute(self) -> AbstractContextManager[Callable[[float], None]]:
        """Runs a block that computes between waits in a turn of its own."""

    def keep(self, give_back: Callable[[], None]) -> None:
        """Has something else given back when the request's answer is written."""


@dataclass(eq=False)
class RequestTransaction:
    """The transaction of one request or task, with what must outlast its interruptions."""

    # The names of the savepoints within which the request's block lies: none but in tests.
    depth: int
    # Whether it is the transaction of a task or command. Its process has a connection of its own,
    # which is kept while it waits.
    of_task: bool = False
    # Names the request to the locks that it holds.
    id: str = field(default_factory=lambda: new_id("hold"))
    # The tenancy scope that the next transaction begins in.
    scope: str = ""
    # Whose requests are counted with this one; None and empty until that is known.
    organization_id: str | None = None
    network: str = ""
    # The keys of the locks that it holds, and for how many of them rows say so (`locks.py`).
    held_locks: list[int] = field(default_factory=list)
    locks_written: int = 0
    # From when on the rows are written anew before a wait (`time.monotonic`).
    renew_at: float = math.inf
    # Called before each interruption, in the transaction that it ends.
    before_interruption: list[Callable[[], None]] = field(default_factory=list)
    # Called once after the end, whatever it was, outside of a transaction.
    after_end: list[Callable[[], None]] = field(default_factory=list)
    # Whether audit entries are written at the end, so that the request may wait behind them.
    defers_audit: bool = False
    # What is written at the end, in the request's last transaction.
    deferred: list[Callable[[], None]] = field(default_factory=list)
    # The request's turn to compute, which it does not have while it waits; tasks have none.
    turn: Turn | None = None
    # Makes the request count as one that waits; called before the first wait that counts.
    begin_waiting: Callable[[], None] | None = None
    # The first statement since the last interruption that wrote or locked something, and whether
    # there was any statement.
    _wrote: str = ""
    _used: bool = True
    _own: bool = False
    _outside: int = 0

    @property
    def outside(self) -> bool:
        """Whether the request waits at this moment."""
        return self._outside > 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing was asked of the database since the last interruption."""
        return not self._used if self.depth else cast("_Interruptible", connection).interrupted

    @property
    def may_wait(self) -> bool:
        """Whether the transaction may be interrupted now."""
        return self.outside or not (self._wrote or self._is_nested() or connection.needs_rollback)

    def interrupt(self) -> None:
        """Commits the transaction and gives the connection back; the next query begins another."""
        if self.is_idle and time.monotonic() < self.renew_at:
            return
        with self.unnoted():
            for call in self.before_interruption:
                call()
        if self.depth:
            self._swap_savepoint()
        else:
            cast("_Interruptible", connection).interrupt(
                resumed=self._enter_scope, keeps_connection=self.of_task
            )
        self._wrote, self._used = "", False

    @contextmanager
    def wait(self, what: str, *, counts: bool) -> Iterator[None]:
        """Runs the block outside of a transaction. `counts`: see `outside_transaction`."""
        if not self.outside:
            if self.may_wait:
                self.interrupt()
                if counts and self.begin_waiting is not None:
                    self.begin_waiting()
                    # It asks the database only for a limit that this process does not remember.
                    self.interrupt()
            else:
                _refuse(f"{what} is waited for behind: {self._wrote or 'an error or savepoint'}")
        if self.turn is not None and not self.outside:
            self.turn.pause()
        self._outside += 1
        try:
            yield
        finally:
            self._outside -= 1
            if self.turn is not None and not self.outside:
                self.turn.resume()

    @contextmanager
    def compute(self) -> Iterator[Callable[[float], None]]:
        """Runs a block that computes between waits, in the request's turn.

        What it yields is called after each step of the block, with the seconds that other threads
        computed for it. It waits there where the request has computed for long.
        """
        if self.turn is None or not self.outside:
            yield lambda _: None
            return
        with self.turn.compute() as charge:
            yield charge

    @contextmanager
    def unnoted(self) -> Iterator[None]:
        """Within the block, statements do not count as writes of the request."""
        before, self._own = self._own, True
        try:
            yield
        finally:
            self._own = before

    def note(
        self,
        execute: Callable[..., Any],
        sql: object,
        params: object,
        many: bool,
        context: object,
    ) -> Any:  # noqa: ANN401 (as Django's wrappers of execution)
        """Runs a statement, and notes whether it wrote. Django calls it for each one."""
        self._used = True
        if not self._own:
            if self.outside:
                _refuse(f"while the request waits it asks the database: {sql!s:.100}")
            if not self._wrote and _writes(str(sql)):
                self._wrote = str(sql)[:200]
        return execute(sql, params, many, context)

    def write_deferred(self) -> None:
        """Writes what is deferred, in the current transaction; nothing if it is to be rolled back.

        Whoever begins the request's transaction calls it at its end.
        """
        deferred, self.deferred = self.deferred, []
        if not connection.needs_rollback:
            for write in deferred:
                write()

    def _is_nested(self) -> bool:
        return len(connection.savepoint_ids) > self.depth

    def _enter_scope(self) -> None:
        with self.unnoted(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config(%s, %s, true)", [SCOPE_SETTING, self.scope])

    def _swap_savepoint(self) -> None:
        """Does to the request's savepoint within a test's transaction what is done to a real one.

        What is rolled back later is rolled back to here.
        """
        with self.unnoted():
            connection.savepoint_commit(connection.savepoint_ids.pop())
            connection.savepoint_ids.append(connection.savepoint() or "")


_current: ContextVar[RequestTransaction | None] = ContextVar("request_transaction", default=None)


def current_transaction() -> RequestTransaction | None:
    """Returns the transaction of the request or task that runs; None outside of one."""
    return _current.get()


@contextmanager
def request_transaction(*, of_task: bool = False) -> Iterator[RequestTransaction]:
    """Runs the block as a request: in one transaction, which waits interrupt.

    An error of the block rolls back what was written since the last interruption, and so does
    `roll_back`.
    """
    request: RequestTransaction | None = None
    try:
        with transaction.atomic():
            # In a test, the request's block is one in the test's transaction: a savepoint.
            request = RequestTransaction(depth=len(connection.savepoint_ids), of_task=of_task)
            token = _current.set(request)
            try:
                with connection.execute_wrapper(request.note):
                    yield request
            finally:
                _current.reset(token)
    finally:
        for call in request.after_end if request is not None else ():
            call()
        if request is not None:
            # It refers to the request's transaction, which would wait for the garbage collector.
            request.begin_waiting = None


@contextmanager
def task_transaction() -> Iterator[RequestTransaction]:
    """Runs a part of a task or command as a request; where a request runs already, as part of it.

    What it wrote before it waits must be committed (`commit_so_far`), so that nothing is lost where
    the task dies meanwhile. Raises `WaitInTransaction` within any other block (see `strict`).
    """
    running = _current.get()
    if running is not None:
        yield running
        return
    if is_in_block():
        _refuse("a task's transaction cannot be interrupted within another one")
    with request_transaction(of_task=True) as task:
        yield task


def outside_transaction(what: str, *, counts: bool = True) -> AbstractContextManager[None]:
    """Interrupts the transaction of the current request for as long as the block lasts.

    Every wait for anything but PostgreSQL goes through here; `what` names it in messages. The block
    asks the database nothing. A request whose wait `counts` is one of those of which an
    organization and an address may have only so many at a time: it raises `TooManyAtOnce` beyond.
    Outside of requests and tasks it does nothing.

    Raises `WaitInTransaction` where the request has written or locked something, and within a
    transaction of another kind, which cannot be interrupted (see `strict`).
    """
    request = _current.get()
    if request is not None:
        return request.wait(what, counts=counts)
    if is_in_block():
        _refuse(f"{what} is waited for within a transaction")
    return nullcontext()


def require_outside(what: str) -> None:
    """Raises `WaitInTransaction` within a transaction, also that of a request (see `strict`).

    For what takes long and is called from many places, such as the hash of a password.
    """
    request = _current.get()
    if is_in_block() if request is None else not request.outside:
        _refuse(f"{what} is made within a transaction")


def is_in_block() -> bool:
    """Whether a block of a transaction is open; the one around a test does not count."""
    return any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)


def commit_so_far() -> bool:
    """Commits what the current request has written so far, whatever becomes of the rest.

    Returns False outside of requests, where it does nothing. Raises `WaitInTransaction` within a
    nested block, as while a change is only tried.
    """
    request = _current.get()
    if request is None:
        return False
    if request._is_nested():
        _refuse("within a nested block nothing can be committed")
        return True
    request.write_deferred()
    request.interrupt()
    return True


def forget_tried() -> None:
    """Has the current request wait again although it wrote: all of that was rolled back.

    Rows that it locked before are let go with its next wait.
    """
    request = _current.get()
    if request is not None:
        request._wrote = ""


def roll_back() -> None:
    """Has the surrounding block end with a rollback, if there is one."""
    if connection.in_atomic_block:
        connection.set_rollback(True)


def _writes(statement: str) -> bool:
    return statement.lstrip().startswith(WRITES) or any(lock in statement for lock in LOCKS)


def _refuse(message: str) -> None:
    if strict:
        raise WaitInTransaction(message)
    logger.error("transaction.wait_within", extra={"reason": message}, stack_info=True)
