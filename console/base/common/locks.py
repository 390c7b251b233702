"""Locks by name: a transaction holds them until it ends, and a request until it ends.

A lock is named by a kind and an identifier. Whoever takes several takes them in the order of their
names, or two may wait for each other.

A transaction takes an advisory lock of PostgreSQL. A request too, and a task (`task_transaction`),
which counts as a request here; but its transaction is interrupted when it waits, which ends
advisory locks. So the transaction that is interrupted writes a row (`HeldLock`) before it commits,
and PostgreSQL releases its advisory locks only when others can see that row. Whoever takes a lock
takes the advisory lock and then looks for a row: there is no moment at which two have it. A row has
a time at which it counts no more: the locks of a web process that died are free a minute later,
those of a worker some seconds later, because a thread renews them for as long as the task waits.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from functools import partial

from django.db import DatabaseError, connection

from console.base.common.errors import Unavailable
from console.base.common.transactions import (
    RequestTransaction,
    current_transaction,
    outside_transaction,
)

logger = logging.getLogger(__name__)

# How long the row of a lock counts: longer than any wait. It is written anew before a wait where it
# is older than the second number.
HELD_S = 60.0
RENEWED_S = 15.0
# The same for locks of tasks, which may wait for minutes, as while they remove a cluster's data.
# They are renewed meanwhile: the first number is how long a worker that was killed, or that hangs,
# keeps others from its work.
TASK_HELD_S = 15.0
TASK_RENEWED_S = 4.0
# How long a request waits for a lock, looking again in growing intervals.
WAIT_S = 30.0
LOOK_S_FIRST = 0.02
LOOK_S_MAX = 0.5


def lock_key(kind: str, name: str) -> int:
    """Returns the 64-bit key of a lock. Locks that share a key by chance only wait needlessly."""
    digest = hashlib.blake2b(f"{kind}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def lock(kind: str, name: str) -> None:
    """Waits until nobody else holds the lock, then holds it.

    A request waits outside of its transaction; behind a write, where it cannot, it waits for
    transactions alone. It raises `Unavailable` after `WAIT_S` seconds. Raises `RuntimeError`
    outside of a transaction, where the lock would be released at once.
    """
    _require_transaction()
    key, request = lock_key(kind, name), current_transaction()
    if request is None:
        _execute("SELECT pg_advisory_xact_lock(%s)", key)
        while _is_held(key, but_by=""):
            time.sleep(LOOK_S_FIRST)
        return
    if key in request.held_locks:
        return
    deadline, look_s = time.monotonic() + WAIT_S, LOOK_S_FIRST
    while not _take(key, request, wait=not request.may_wait):
        if time.monotonic() >= deadline or not request.may_wait:
            raise Unavailable("Another request changes the same thing.", retry_after_s=1)
        with outside_transaction(f"the lock of {kind}"):
            time.sleep(look_s)
        look_s = min(2 * look_s, LOOK_S_MAX)


def lock_briefly(kind: str, name: str) -> None:
    """Waits until no transaction holds the lock, then holds it until the transaction ends or waits.

    It is for counting something before a wait. A lock of a kind is always taken like this or never.
    Raises `RuntimeError` outside of a transaction.
    """
    _require_transaction()
    _execute("SELECT pg_advisory_xact_lock(%s)", lock_key(kind, name))


def try_lock(kind: str, name: str) -> bool:
    """Takes the lock if it is free; returns whether it did. Never waits.

    Raises `RuntimeError` outside of a transaction.
    """
    _require_transaction()
    key, request = lock_key(kind, name), current_transaction()
    if request is None:
        return _execute("SELECT pg_try_advisory_xact_lock(%s)", key) and not _is_held(
            key, but_by=""
        )
    return key in request.held_locks or _take(key, request, wait=False)


def require_held() -> None:
    """Keeps the locks of the current request from passing to others until its transaction ends.

    A lock passes to whoever asks for it once its holder waited for longer than it lasts. Where one
    did, this raises `Unavailable`, and the caller must write nothing that depended on it.
    """
    request = current_transaction()
    if request is None or not request.locks_written:
        return  # advisory locks last until the end of the transaction
    with request.unnoted(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM common_heldlock WHERE key = ANY(%s) AND holder = %s FOR UPDATE",
            [request.held_locks[: request.locks_written], request.id],
        )
        held = cursor.rowcount
    if held < request.locks_written:
        raise Unavailable("It took so long that something else began meanwhile.", retry_after_s=1)


def purge_held() -> int:
    """Deletes rows of locks that count no more; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM common_heldlock WHERE until < clock_timestamp()")
        return int(cursor.rowcount)


def _take(key: int, request: RequestTransaction, *, wait: bool) -> bool:
    """Has a request hold a lock if it is free; with `wait`, once no transaction holds it."""
    with request.unnoted():
        if wait:
            _execute("SELECT pg_advisory_xact_lock(%s)", key)
        elif not _execute("SELECT pg_try_advisory_xact_lock(%s)", key):
            return False
        if _is_held(key, but_by=request.id):
            return False
    if not request.held_locks:
        request.before_interruption.append(partial(_write_rows, request))
        request.after_end.append(partial(_delete_rows, request))
    request.held_locks.append(key)
    return True


def _write_rows(request: RequestTransaction) -> None:
    """Has the locks outlast the transaction that ends now."""
    if not _is_to_write(request):
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO common_heldlock (key, holder, until)"
            " SELECT key, %s, clock_timestamp() + make_interval(secs => %s)"
            " FROM unnest(%s::bigint[]) AS key ON CONFLICT (key) DO UPDATE"
            " SET holder = EXCLUDED.holder, until = EXCLUDED.until"
            " WHERE common_heldlock.holder = EXCLUDED.holder"
            " OR common_heldlock.until < clock_timestamp()",
            [request.id, TASK_HELD_S if request.of_task else HELD_S, request.held_locks],
        )
    if not request.of_task:
        request.renew_at = time.monotonic() + RENEWED_S
    elif not request.locks_written:
        _begin_renewing(request)
    request.locks_written = len(request.held_locks)


def _begin_renewing(request: RequestTransaction) -> None:
    """Has a thread renew a task's locks until the task's transaction ends."""
    ended = threading.Event()
    thread = threading.Thread(target=_renew_until, args=(ended, request.id), daemon=True)
    thread.start()

    def end() -> None:
        ended.set()
        thread.join()

    # Before the rows are deleted.
    request.after_end.insert(0, end)


def _renew_until(ended: threading.Event, holder: str) -> None:
    """Renews rows of locks by a connection of this thread's own, which it has only meanwhile."""
    while not ended.wait(TASK_RENEWED_S):
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE common_heldlock SET until = clock_timestamp()"
                    " + make_interval(secs => %s) WHERE holder = %s",
                    [TASK_HELD_S, holder],
                )
        except DatabaseError:
            logger.exception("locks.not_renewed holder=%s", holder)
        finally:
            connection.close()


def _is_to_write(request: RequestTransaction) -> bool:
    stale = time.monotonic() >= request.renew_at
    return stale or request.locks_written < len(request.held_locks)


def _delete_rows(request: RequestTransaction) -> None:
    """Releases the locks of a request that has ended."""
    if not request.locks_written:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM common_heldlock WHERE holder = %s", [request.id])
    except DatabaseError:
        # They end by themselves, at their time.
        logger.exception("locks.left holder=%s", request.id)


def _is_held(key: int, but_by: str) -> bool:
    """Whether a request that is interrupted holds the lock. Asked with the advisory lock held."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM common_heldlock"
            " WHERE key = %s AND holder <> %s AND until > clock_timestamp())",
            [key, but_by],
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def _execute(statement: str, key: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(statement, [key])
        row = cursor.fetchone()
    return bool(row and row[0])


def _require_transaction() -> None:
    if not connection.in_atomic_block:
        message = "an advisory lock ends with its transaction, and there is none"
        raise RuntimeError(message)
