"""Checks of PostgreSQL and of Celery's broker for `/readyz`."""

from __future__ import annotations

from celery import current_app
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

CONNECT_TIMEOUT_S = 2


class MigrationsMissing(Exception):
    """The database is older than this code."""


def check_database() -> None:
    """The serving role can connect and read."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def check_migrations() -> None:
    """Every migration of this code has been applied."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise MigrationsMissing


def check_queue() -> None:
    """Celery's broker accepts a connection."""
    with current_app.connection_for_write(connect_timeout=CONNECT_TIMEOUT_S) as broker:
        broker.ensure_connection(max_retries=1, timeout=CONNECT_TIMEOUT_S)
