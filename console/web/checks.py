"""The readiness checks of PostgreSQL and of Celery's broker: each raises where its part fails."""

from __future__ import annotations

from celery import current_app
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

CONNECT_TIMEOUT_S = 2


class MigrationsMissing(Exception):
    """The database lacks migrations that this code has."""


def check_database() -> None:
    """Raises where the serving role cannot connect to PostgreSQL or read."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def check_migrations() -> None:
    """Raises `MigrationsMissing` where a migration of this code was not applied."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise MigrationsMissing


def check_queue() -> None:
    """Raises where Celery's broker accepts no connection within the timeout."""
    with current_app.connection_for_write(connect_timeout=CONNECT_TIMEOUT_S) as broker:
        broker.ensure_connection(max_retries=1, timeout=CONNECT_TIMEOUT_S)
