"""Whose card an attempt charges, charges in advance, and what is known of payers."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

NOTICES = [
    ("payment_failed", "A payment failed"),
    ("overdue", "An invoice is overdue"),
    ("announced", "A step is announced"),
    ("acted", "A step was taken"),
    ("lifted", "Everything is paid"),
    ("advance_failed", "A charge in advance failed"),
    ("limit_reached", "Traffic is refused before the first payment"),
    ("disputed", "Charges are disputed"),
]


SHARES_ARE_NOT_NEGATIVE = models.CheckConstraint(
    condition=models.Q(
        ("free_before__gte", 0),
        ("free_before__lte", models.F("quantity")),
        ("of_trial__gte", 0),
        ("of_trial__lte", models.F("quantity")),
        ("quantity__gte", 0),
    ),
    name="shares_are_not_negative",
)
# The columns keep their names, by which processes of the last release still write them.
RENAMED = [
    migrations.RemoveConstraint("allowanceshare", "shares_are_not_negative"),
    migrations.AlterField(
        "payerorganization", "past_trial", models.JSONField(db_column="past_trial", default=dict)
    ),
    migrations.RenameField("payerorganization", "past_trial", "free_before"),
    migrations.AlterField(
        "allowanceshare",
        "past_trial",
        models.DecimalField(db_column="past_trial", decimal_places=0, default=0, max_digits=38),
    ),
    migrations.RenameField("allowanceshare", "past_trial", "free_before"),
    migrations.AddConstraint("allowanceshare", SHARES_ARE_NOT_NEGATIVE),
]


class Migration(migrations.Migration):
    """Columns that may be null, choices, and a name that only Python has."""

    dependencies = [("billing", "0016_rounding")]

    operations = [
        migrations.AddField(
            model_name="payer",
            name="proved_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="payer",
            name="trusted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="paymentattempt",
            name="first_invoice",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="payment_attempts",
                to="billing.invoice",
            ),
        ),
        migrations.AddField(
            model_name="paymentattempt",
            name="payer",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="payment_attempts",
                to="billing.payer",
            ),
        ),
        migrations.AlterField(
            model_name="dunningnotice",
            name="kind",
            field=models.CharField(choices=NOTICES, max_length=16),
        ),
        migrations.SeparateDatabaseAndState(state_operations=RENAMED),
    ]
