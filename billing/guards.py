"""Operations of migrations by which PostgreSQL itself refuses to change money.

Two guards each: the serving role has no right to, and a trigger refuses whoever has, the owner of
the tables included. Who wants to change an issued invoice must change a migration first.
"""

from __future__ import annotations

from django.db.migrations.operations import RunSQL
from psycopg import sql

from console.base.common.conf import config

REFUSE = "billing_refuse_change"


def refusing_function() -> RunSQL:
    """The function of the triggers below, once."""
    return RunSQL(
        sql=f"""
            CREATE FUNCTION {REFUSE}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION '% of % is refused: its rows never change', TG_OP, TG_TABLE_NAME
                    USING ERRCODE = 'insufficient_privilege';
            END $$
        """,
        reverse_sql=f"DROP FUNCTION {REFUSE}()",
    )


def refuse_changes(table: str, *, rights: str = "UPDATE, DELETE") -> RunSQL:
    """Rows of `table` stay as they were written. The serving role loses `rights`."""
    role, name = _quoted(config().database.app_user), _quoted(table)
    return RunSQL(
        sql=[
            f"REVOKE {rights} ON {name} FROM {role}",
            f"CREATE TRIGGER never_changes BEFORE UPDATE OR DELETE ON {name}"
            f" FOR EACH ROW EXECUTE FUNCTION {REFUSE}()",
        ],
        reverse_sql=[
            f"DROP TRIGGER never_changes ON {name}",
            f"GRANT {rights} ON {name} TO {role}",
        ],
    )


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)
