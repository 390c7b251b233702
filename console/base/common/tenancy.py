"""Row-level security: which organisation's rows a transaction sees.

The second of two guards (`docs/decisions/0008-two-guards-of-tenancy.md`). The first are querysets
that name the organisation. Should one forget to, PostgreSQL shows it only the rows of the scope
that the transaction is in, and none at all outside of a scope.
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

SETTING = "freshet.organization"
EVERY_ORGANIZATION = "*"
# Rows of requests that nobody is signed in for, such as sign-ups.
NO_ORGANIZATION = "anonymous"

Row = TypeVar("Row", bound=models.Model)


@contextmanager
def organization_scope(organization_id: str) -> Iterator[None]:
    """Inside, PostgreSQL shows the rows of one organisation. Opens a transaction if there is none.

    Scopes nest: at the end the outer one holds again.
    """
    _require_organization(organization_id)
    with _scope(organization_id):
        yield


class Scope:
    """A scope that holds. `after`: the one that follows, where it is not the one before."""

    __slots__ = ("after",)

    def __init__(self) -> None:
        self.after: str | None = None

    def leave_for(self, organization_id: str) -> None:
        """Has the rows of one organisation shown from this scope's end on. For authentication."""
        _require_organization(organization_id)
        self.after = organization_id


@contextmanager
def system_scope() -> Iterator[Scope]:
    """Inside, PostgreSQL shows every organisation's rows.

    For finding out whose request it is, and for sweeps. `tests/console/test_tenancy.py` holds the
    list of its callers.
    """
    with _scope(EVERY_ORGANIZATION) as scope:
        yield scope


@contextmanager
def request_scope() -> Iterator[None]:
    """Inside, a scope that authentication enters lasts until the end of this block.

    It ends with the request's transaction, which takes the setting back by itself. Only within a
    wider one, as tests have, the scope before is set again.
    """
    if len(connection.atomic_blocks) == 1:
        _set("")
        yield
    else:
        with _scope(""):
            yield


def enter_organization(organization_id: str) -> None:
    """Sets the scope for the rest of the surrounding `request_scope`. For authentication."""
    if not connection.in_atomic_block:
        message = "a scope ends with its transaction, and there is none"
        raise RuntimeError(message)
    _set(organization_id)


def current_scope() -> str:
    """The organisation in scope, `*`, or the empty text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting(%s, true), '')", [SETTING])
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def _require_organization(organization_id: str) -> None:
    if organization_id in {"", EVERY_ORGANIZATION}:
        message = f"{organization_id!r} is no organisation"
        raise ValueError(message)


@contextmanager
def _scope(value: str) -> Iterator[Scope]:
    if connection.in_atomic_block:
        yield from _set_and_restore(value)
    else:
        with transaction.atomic():
            yield from _set_and_restore(value)


def _set_and_restore(value: str) -> Iterator[Scope]:
    scope, before = Scope(), _set(value)
    try:
        yield scope
    finally:
        # A transaction that failed takes no more commands; its end takes the setting back.
        raw = connection.connection
        healthy = raw is not None and raw.info.transaction_status == TransactionStatus.INTRANS
        if healthy and not connection.needs_rollback:
            _set(before if scope.after is None else scope.after)


def _set(value: str) -> str:
    """Sets the scope until the transaction ends; gives the one before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(current_setting(%s, true), ''), set_config(%s, %s, true)",
            [SETTING, SETTING, value],
        )
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def enable_rls(table: str, column: str = "organization_id") -> RunSQL:
    """A migration's operation: rows of `table` are seen and written only in their scope.

    `column` holds the organisation's id. The owner is subject to it as well (`FORCE`): a migration
    that changes rows sets the scope itself. Every table of tenants gets it in the migration that
    creates it; `tests/console/test_tenancy.py` finds one that did not.
    """
    scope = f"current_setting('{SETTING}', true)"
    condition = f"{_quoted(column)} = {scope} OR {scope} = '{EVERY_ORGANIZATION}'"
    name = _quoted(table)
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
    """A migration's operation: the serving role may only add rows to `table`."""
    role = _quoted(config().database.app_user)
    return RunSQL(
        sql=f"REVOKE UPDATE, DELETE ON {_quoted(table)} FROM {role}",
        reverse_sql=f"GRANT UPDATE, DELETE ON {_quoted(table)} TO {role}",
    )


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)
