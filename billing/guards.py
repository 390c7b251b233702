"""Operations of migrations by which PostgreSQL itself refuses to change money.

Each table has two guards: the serving role loses the right to change rows, and a trigger refuses
changes from every role, the owner of the tables included. To change an issued invoice one must
change a migration first. Only a superuser passes them, in a session that says it is a replica.
"""

from __future__ import annotations

from django.db.migrations.operations import RunSQL
from psycopg import sql

from console.base.common.conf import config

REFUSE = "billing_refuse_change"
REFUSE_EMPTYING = "billing_refuse_emptying"
GUARD_COLUMNS = "billing_guard_columns"


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


def refusing_emptying_function() -> RunSQL:
    """Creates the function that the triggers of `refuse_emptying` call. Needed once."""
    return RunSQL(
        sql=f"""
            CREATE FUNCTION {REFUSE_EMPTYING}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION 'TRUNCATE of % is refused: its rows are money', TG_TABLE_NAME
                    USING ERRCODE = 'insufficient_privilege';
            END $$
        """,
        reverse_sql=f"DROP FUNCTION {REFUSE_EMPTYING}()",
    )


def refuse_emptying(table: str) -> RunSQL:
    """Has PostgreSQL refuse TRUNCATE of `table`, for which triggers of rows do not fire."""
    role, name = _quoted_name(config().database.app_user), _quoted_name(table)
    return RunSQL(
        sql=[
            f"REVOKE TRUNCATE ON {name} FROM {role}",
            f"CREATE TRIGGER never_empty BEFORE TRUNCATE ON {name}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {REFUSE_EMPTYING}()",
        ],
        reverse_sql=f"DROP TRIGGER never_empty ON {name}",
    )


def guarding_columns_function() -> RunSQL:
    """Creates the function that the triggers of `only_columns_change` call. Needed once."""
    return RunSQL(
        sql=f"""
            CREATE FUNCTION {GUARD_COLUMNS}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF TG_OP = 'DELETE' THEN
                    RAISE EXCEPTION 'DELETE of % is refused: its rows stay', TG_TABLE_NAME
                        USING ERRCODE = 'insufficient_privilege';
                END IF;
                IF to_jsonb(NEW) - TG_ARGV::text[] <> to_jsonb(OLD) - TG_ARGV::text[] THEN
                    RAISE EXCEPTION 'UPDATE of % is refused: only % may change', TG_TABLE_NAME,
                        array_to_string(TG_ARGV, ', ') USING ERRCODE = 'insufficient_privilege';
                END IF;
                RETURN NEW;
            END $$
        """,
        reverse_sql=f"DROP FUNCTION {GUARD_COLUMNS}()",
    )


def only_columns_change(table: str, *columns: str) -> RunSQL:
    """Has PostgreSQL refuse to delete rows of `table` and to change others than some columns."""
    role, name = _quoted_name(config().database.app_user), _quoted_name(table)
    granted = ", ".join(map(_quoted_name, columns))
    arguments = ", ".join(f"'{column}'" for column in columns)
    return RunSQL(
        sql=[
            f"REVOKE UPDATE, DELETE ON {name} FROM {role}",
            f"GRANT UPDATE ({granted}) ON {name} TO {role}",
            f"CREATE TRIGGER columns_stay BEFORE UPDATE OR DELETE ON {name}"
            f" FOR EACH ROW EXECUTE FUNCTION {GUARD_COLUMNS}({arguments})",
        ],
        reverse_sql=[
            f"DROP TRIGGER columns_stay ON {name}",
            f"GRANT UPDATE, DELETE ON {name} TO {role}",
        ],
    )


def take_rights(table: str, rights: str) -> RunSQL:
    """Takes rights on `table`, such as `UPDATE, DELETE`, from the serving role."""
    role, name = _quoted_name(config().database.app_user), _quoted_name(table)
    return RunSQL(
        sql=f"REVOKE {rights} ON {name} FROM {role}",
        reverse_sql=f"GRANT {rights} ON {name} TO {role}",
    )


def _quoted_name(name: str) -> str:
    return sql.Identifier(name).as_string(None)
