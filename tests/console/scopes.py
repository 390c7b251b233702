"""Calls services as a request or a task does: in a transaction that waits interrupt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import connections, transaction

from console.base.common.tenancy import _set_scope, current_scope, organization_scope, system_scope
from console.base.common.transactions import request_transaction

LIMIT_S = 60

T = TypeVar("T")


@contextmanager
def as_request_of(organization_id: str) -> Iterator[None]:
    """Runs the block as a request of an organization, below a cluster."""
    with request_transaction() as request, organization_scope(organization_id):
        request.defers_audit = True
        yield
        request.write_deferred()


@contextmanager
def seeing_rows_of(organization_id: str) -> Iterator[None]:
    """Has PostgreSQL show an organization's rows to a test, without a transaction of the block's.

    So services within it run as they do in a worker. Only for tests whose transaction is rolled
    back.
    """
    before = current_scope()
    _set_scope(organization_id)
    try:
        yield
    finally:
        _set_scope(before)


@contextmanager
def rolled_back() -> Iterator[None]:
    """Rolls back what the block writes, as the transaction around a test is rolled back.

    It does not count as a transaction of the service: what is called within it may wait.
    """
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined] # as Django marks those of its tests
    with block:
        try:
            yield
        finally:
            transaction.set_rollback(True)


@contextmanager
def running(work: Callable[[], object], limit_s: float = LIMIT_S) -> Iterator[threading.Thread]:
    """Runs `work` beside the block, as a worker or another request does; raises what it raised."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(limit_s)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def beside(ask: Callable[[], T]) -> T:
    """Calls `ask` as another process would; returns its result."""
    results: list[T] = []

    def run() -> None:
        try:
            with system_scope():
                results.append(ask())
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(LIMIT_S)
    return results[0]
