"""Columns that a migration adds to a table that exists.

While a release is rolled out, the one before goes on writing to the migrated tables and does not
name their new columns, so that the database must fill them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddField, CreateModel
from django.db.models import Field

PACKAGES = ("billing", "console", "metering", "provisioning")
# The last migrations that were applied everywhere before this rule.
LAST_NOT_JUDGED = {
    "accounts": 12,
    "alerts": 4,
    "billing": 16,
    "common": 4,
    "metering": 10,
    "provisioning": 18,
}


def added_columns(migration: Migration) -> Iterator[tuple[str, Field[Any, Any]]]:
    """The columns that a migration adds to tables that it did not make, with their names."""
    made = {
        operation.name_lower
        for operation in migration.operations
        if isinstance(operation, CreateModel)
    }
    for operation in migration.operations:
        if isinstance(operation, AddField) and operation.model_name_lower not in made:
            name = f"{migration.app_label}.{migration.name}: {operation.model_name}"
            yield f"{name}.{operation.name}", operation.field


def needs_value(field: Field[Any, Any]) -> bool:
    """Whether an INSERT that does not name the column fails."""
    return not (field.null or field.has_db_default() or field.many_to_many or field.generated)


def own_migrations() -> list[Migration]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return [
        migration
        for migration in loader.disk_migrations.values()
        if migration.__module__.startswith(PACKAGES)
    ]


def number(migration: Migration) -> int:
    return int(migration.name.split("_")[0])


def test_the_database_fills_new_columns():
    without_default = [
        name
        for migration in own_migrations()
        if number(migration) > LAST_NOT_JUDGED.get(migration.app_label, 0)
        for name, field in added_columns(migration)
        if needs_value(field)
    ]
    assert without_default == [], "give each of them `db_default`, or let it be null"


def test_a_column_without_a_default_is_found():
    # A migration from before the rule is one that breaks it.
    old = [
        name
        for migration in own_migrations()
        for name, field in added_columns(migration)
        if needs_value(field)
    ]
    assert "provisioning.0018_forfeited_clusters: cluster.forfeited" in old
    assert not any("accounts.0006_projects_and_people: project.organization" in n for n in old)
