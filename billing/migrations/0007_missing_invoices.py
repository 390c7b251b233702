"""Months that are issued by themselves, and the invoices that are missing."""

from __future__ import annotations

from functools import partial

import django.db.models.deletion
from django.db import migrations, models

import console.base.common.clock
import console.base.common.ids
from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """Two tables, the second one of tenants."""

    dependencies = [
        ("accounts", "0009_account_status"),
        ("billing", "0006_mails"),
    ]

    operations = [
        migrations.CreateModel(
            name="InvoiceMonth",
            fields=[
                ("month", models.DateField(primary_key=True, serialize=False)),
                ("begun_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("reason", models.TextField(blank=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_try_at", models.DateTimeField(default=console.base.common.clock.now)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("finished_at__isnull", True)),
                        fields=["month"],
                        name="invoice_months_open",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MissingInvoice",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "miv"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("month", models.DateField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("usage_incomplete", "Usage is incomplete"),
                            ("impossible", "The invoice cannot be made"),
                        ],
                        max_length=24,
                    ),
                ),
                ("reason", models.TextField()),
                ("attempts", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("tried_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("next_try_at", models.DateTimeField()),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="missing_invoices",
                        to="accounts.organization",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organization", "month"), name="one_missing_invoice_a_month"
                    )
                ],
                "indexes": [
                    models.Index(fields=["-created_at", "-id"], name="missing_invoices_newest"),
                    models.Index(fields=["next_try_at"], name="missing_invoices_due"),
                ],
            },
        ),
        enable_rls("billing_missinginvoice"),
    ]
