"""Mails of invoices, and where they go. Invoices that were issued before get none."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """A column, and a table of tenants."""

    dependencies = [
        ("billing", "0005_guards"),
    ]

    operations = [
        migrations.AddField(
            model_name="billingdetails",
            name="email",
            field=models.EmailField(blank=True, max_length=254),
        ),
        migrations.CreateModel(
            name="InvoiceMail",
            fields=[
                (
                    "invoice",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="mail",
                        serialize=False,
                        to="billing.invoice",
                    ),
                ),
                ("organization_id", models.CharField(max_length=32)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("failed_at", models.DateTimeField(blank=True, null=True)),
                ("recipients", models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("sent_at__isnull", True)),
                        fields=["invoice"],
                        name="invoice_mails_due",
                    )
                ],
            },
        ),
        enable_rls("billing_invoicemail"),
    ]
