"""Suspending budgets that stop fetch, too, and cap traffic alone; budgets that throttle.

Budgets and events that are there keep what was promised until the end of the month in which this
runs, and each organization that has such a budget gets a mail (`billing.budgets.promises`).
"""

from __future__ import annotations

from datetime import date

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from billing.periods import month_of
from console.base.common.clock import now
from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING

ACTIONS = [("notify", "Notify"), ("suspend", "Suspend"), ("throttle", "Throttle")]
MAIL = "billing.send_promise_mail"


def this_month() -> date:
    """The month in which the migration runs. Rows that are there get it."""
    return month_of(now())


def mark_acting(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Notes which budgets act, and enqueues the mail of each organization with a promise."""
    budgets = apps.get_model("billing", "Budget").objects.using(editor.connection.alias)
    outbox = apps.get_model("common", "OutboxEntry").objects.using(editor.connection.alias)
    _set_scope(editor, EVERY_ORGANIZATION)
    budgets.filter(acting_since__isnull=False).update(acting_as="suspend")
    promised = budgets.filter(action="suspend", removed_at=None).order_by("organization_id")
    for owner in promised.values_list("organization_id", flat=True).distinct():
        arguments = {"organization_id": owner}
        outbox.create(organization_id=owner, task=MAIL, arguments=arguments)
    _set_scope(editor, "")


def _set_scope(editor: BaseDatabaseSchemaEditor, scope: str) -> None:
    with editor.connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, %s, true)", [SETTING, scope])


class Migration(migrations.Migration):
    """Columns of budgets and of their events."""

    dependencies = [
        ("common", "0004_outbox_request_id"),
        ("billing", "0010_collection"),
    ]

    operations = [
        *(
            migrations.AlterField(model, "action", models.CharField(choices=ACTIONS, max_length=16))
            for model in ("budget", "budgetevent")
        ),
        *(
            migrations.AddField(
                model, "throttle_bytes_per_s", models.BigIntegerField(blank=True, null=True)
            )
            for model in ("budget", "budgetevent")
        ),
        # A default of the column, for rows that are there: events never change.
        *(
            migrations.AddField(
                model,
                "covers_all_until",
                models.DateField(blank=True, default=this_month, null=True),
            )
            for model in ("budget", "budgetevent")
        ),
        *(
            migrations.AlterField(
                model, "covers_all_until", models.DateField(blank=True, null=True)
            )
            for model in ("budget", "budgetevent")
        ),
        migrations.AddField("budget", "kept_minor", models.BigIntegerField(default=0)),
        migrations.AddField(
            "budgetevent", "kept_minor", models.BigIntegerField(blank=True, null=True)
        ),
        migrations.AlterField(
            "budget",
            "suspended_at",
            models.DateTimeField(blank=True, db_column="suspended_at", null=True),
        ),
        migrations.RenameField("budget", "suspended_at", "acting_since"),
        migrations.AddField(
            "budget",
            "acting_as",
            models.CharField(blank=True, choices=ACTIONS, default="", max_length=16),
            preserve_default=False,
        ),
        migrations.AlterField(
            "budgetevent",
            "kind",
            models.CharField(
                choices=[
                    ("created", "Created"),
                    ("changed", "Changed"),
                    ("removed", "Removed"),
                    ("threshold_reached", "Threshold reached"),
                    ("suspended", "Suspended"),
                    ("throttled", "Throttled"),
                    ("resumed", "Resumed"),
                ],
                max_length=32,
            ),
        ),
        migrations.AddConstraint(
            "budget",
            models.CheckConstraint(
                condition=~models.Q(action="throttle") | models.Q(throttle_bytes_per_s__gt=0),
                name="throttling_budgets_have_a_rate",
            ),
        ),
        migrations.RunPython(mark_acting, migrations.RunPython.noop),
    ]
