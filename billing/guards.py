"""Operations of migrations by which PostgreSQL itself refuses to change money.

Each table has two guards: the serving role loses the right to change rows, and a trigger refuses
changes from every role, the owner of the tables included. To change an issued invoice one must
change a migration first.
"""

from __future__ import annotations

from django.db.migrations.operations import RunSQL
from psycopg import sql

from console.base.common.conf import config

REFUSE = "billing_refuse_change"


def refusing_function() -> RunSQL:
    """Creates the function that the triggers of `refuse_changes` call. Needed once."""
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
    """Has PostgreSQL refuse changes of `table`'s rows, and takes `rights` from the serving role."""
    role, name = _quoted_name(config().database.app_user), _quoted_name(table)
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


def _quoted_name(name: str) -> str:
    return sql.Identifier(name).as_string(None)
