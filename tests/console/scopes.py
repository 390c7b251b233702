"""Calls services as a request or a task does: in a transaction that waits interrupt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from console.base.common.tenancy import _set_scope, current_scope, organization_scope
from console.base.common.transactions import request_transaction


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
