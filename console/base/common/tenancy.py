"""Tenancy scopes: which organization's rows PostgreSQL shows to a transaction.

Row-level security is the second of two guards (`docs/decisions/0008-two-guards-of-tenancy.md`). The
first are querysets that name the organization. If one forgets to, PostgreSQL shows it only the rows
of the scope that the transaction is in, and no rows outside of a scope.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection, models, transaction
from django.db.migrations.operations import RunSQL
from psycopg import sql
from psycopg.pq import TransactionStatus

from console.base.common.conf import config
from console.base.common.transactions import SCOPE_SETTING, current_transaction, is_in_block

SETTING = SCOPE_SETTING
EVERY_ORGANIZATION = "*"
# The scope of rows that belong to no organization, such as tasks of a sign-up.
NO_ORGANIZATION = "anonymous"

Row = TypeVar("Row", bound=models.Model)


@contextmanager
def organization_scope(organization_id: str) -> Iterator[None]:
    """Within the block PostgreSQL shows the rows of one organization.

    Opens a transaction if there is none. Scopes nest: after the block the outer one holds again.
    Raises `ValueError` for an id that is empty or `*`.
    """
    _require_organization(organization_id)
    with _scope(organization_id):
        yield


class Scope:
    """An entered scope. `after` is the scope that holds once it ends; None for the one before."""

    __slots__ = ("after",)

    def __init__(self) -> None:
        self.after: str | None = None

    def leave_for(self, organization_id: str) -> None:
        """Has one organization's scope hold once this scope ends. For authentication."""
        _require_organization(organization_id)
        self.after = organization_id


@contextmanager
def system_scope() -> Iterator[Scope]:
    """Within the block PostgreSQL shows every organization's rows.

    It is for authentication, which must find the organization of a credential, and for sweeps.
    `tests/console/test_tenancy.py` lists the callers.
    """
    with _scope(EVERY_ORGANIZATION) as scope:
        yield scope


@contextmanager
def request_scope() -> Iterator[None]:
    """Within the block a scope that authentication enters lasts until the block ends.

    PostgreSQL resets the scope at the end of a transaction; where a wait interrupts that of the
    request, the next one begins in the same scope. Only within an outer transaction, as tests have,
    is the earlier scope restored here.
    """
    if len(connection.atomic_blocks) == 1:
        _set_scope("")
        yield
    else:
        with _scope(""):
            yield


def enter_organization(organization_id: str) -> None:
    """Sets the scope for the rest of the surrounding `request_scope`. For authentication.

    Raises `RuntimeError` outside of a transaction.
    """
    if not connection.in_atomic_block:
        message = "a scope ends with its transaction, and there is none"
        raise RuntimeError(message)
    _set_scope(organization_id)


def current_scope() -> str:
    """Returns the id of the organization in scope, `*` for all, or an empty text for none."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting(%s, true), '')", [SETTING])
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def _require_organization(organization_id: str) -> None:
    if organization_id in {"", EVERY_ORGANIZATION}:
        message = f"{organization_id!r} is no organization"
        raise ValueError(message)


@contextmanager
def _scope(value: str) -> Iterator[Scope]:
    if is_in_block():
        yield from _set_and_restore(value)
    else:
        with transaction.atomic():
            yield from _set_and_restore(value)


def _set_and_restore(value: str) -> Iterator[Scope]:
    scope, before = Scope(), _set_scope(value)
    try:
        yield scope
    finally:
        _leave_scope(before if scope.after is None else scope.after)


def _leave_scope(after: str) -> None:
    # A failed transaction accepts no commands; its rollback resets the setting anyway. Where a
    # request's transaction is interrupted, its next one begins in the scope.
    request = current_transaction()
    if request is not None:
        request.scope = after
    raw = connection.connection
    healthy = raw is not None and raw.info.transaction_status == TransactionStatus.INTRANS
    if healthy and not connection.needs_rollback:
        _set_scope(after)


def _set_scope(value: str) -> str:
    """Sets the scope until the transaction ends; returns the one before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(current_setting(%s, true), ''), set_config(%s, %s, true)",
            [SETTING, SETTING, value],
        )
        row = cursor.fetchone()
    request = current_transaction()
    if request is not None:
        request.scope = value
    return str(row[0]) if row else ""


def enable_rls(table: str, column: str = "organization_id") -> RunSQL:
    """Returns a migration's operation: rows of `table` are seen and written only in their scope.

    `column` holds the organization's id. The table's owner is subject to it too (`FORCE`), so a
    migration that changes rows sets the scope itself. Every table with tenants' rows needs it in
    the migration that creates it; `tests/console/test_tenancy.py` fails for one without it.
    """
    scope = f"current_setting('{SETTING}', true)"
    condition = f"{_quote_name(column)} = {scope} OR {scope} = '{EVERY_ORGANIZATION}'"
    name = _quote_name(table)
    return RunSQL(
        sql=[
            f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY",
            f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY organization ON {name} USING ({condition}) WITH CHECK ({condition})",
        ],
        reverse_sql=[
            f"DROP POLICY organization ON {name}",
            f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY",
            f"ALTER TABLE {name} DISABLE ROW LEVEL SECURITY",
        ],
    )


def append_only(table: str) -> RunSQL:
    """Returns a migration's operation that has the serving role only add rows to `table`."""
    role = _quote_name(config().database.app_user)
    return RunSQL(
        sql=f"REVOKE UPDATE, DELETE ON {_quote_name(table)} FROM {role}",
        reverse_sql=f"GRANT UPDATE, DELETE ON {_quote_name(table)} TO {role}",
    )


def _quote_name(name: str) -> str:
    return sql.Identifier(name).as_string(None)
