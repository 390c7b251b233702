"""Payers, trials, and what is free for whom in a month."""

from __future__ import annotations

from functools import partial

import django.db.models.deletion
from django.db import migrations, models

import console.base.common.clock
import console.base.common.ids
from billing.guards import only_columns_change, refuse_changes, refuse_emptying
from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """Four tables, of which that of payers belongs to no organization, and a column."""

    dependencies = [
        ("accounts", "0010_traffic_limits"),
        ("billing", "0011_budget_promises"),
    ]

    operations = [
        migrations.AddField(
            model_name="invoice",
            name="allowance",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name="Payer",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "pyr"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("card", "Card"), ("account", "Bank account")], max_length=16
                    ),
                ),
                (
                    "fingerprint",
                    models.CharField(blank=True, max_length=64, null=True, unique=True),
                ),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
            ],
        ),
        migrations.CreateModel(
            name="PayerOrganization",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("since", models.DateTimeField(default=console.base.common.clock.now)),
                ("until", models.DateTimeField(blank=True, null=True)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="payer_links",
                        to="accounts.organization",
                    ),
                ),
                (
                    "payer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="organizations",
                        to="billing.payer",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["organization", "since"], name="payers_of_one")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("until__isnull", True)),
                        fields=("organization",),
                        name="one_payer_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("until__isnull", True),
                            ("until__gte", models.F("since")),
                            _connector="OR",
                        ),
                        name="payers_end_after_they_begin",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Trial",
            fields=[
                (
                    "organization",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="trial",
                        serialize=False,
                        to="accounts.organization",
                    ),
                ),
                (
                    "address_sha256",
                    models.CharField(blank=True, max_length=64, null=True, unique=True),
                ),
                ("quantities", models.JSONField(default=dict)),
                ("month", models.DateField()),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
            ],
        ),
        migrations.CreateModel(
            name="AllowanceShare",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("month", models.DateField()),
                (
                    "meter",
                    models.CharField(
                        choices=[
                            ("ingress_bytes", "Data in"),
                            ("egress_bytes", "Data out"),
                            ("storage_byte_minutes", "Storage"),
                            ("partition_minutes", "Partitions"),
                        ],
                        max_length=32,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("pool", "A share of its payer's allowance"),
                            ("trial", "Its trial"),
                        ],
                        max_length=16,
                    ),
                ),
                ("quantity", models.DecimalField(decimal_places=0, max_digits=38)),
                ("of_trial", models.DecimalField(decimal_places=0, default=0, max_digits=38)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="allowance_shares",
                        to="accounts.organization",
                    ),
                ),
                (
                    "payer",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="billing.payer",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["month", "payer"], name="shares_of_a_payer")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organization", "month", "meter"), name="one_share_a_meter"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("of_trial__gte", 0),
                            ("of_trial__lte", models.F("quantity")),
                            ("quantity__gte", 0),
                        ),
                        name="shares_are_not_negative",
                    ),
                ],
            },
        ),
        *map(
            enable_rls,
            ("billing_payerorganization", "billing_trial", "billing_allowanceshare"),
        ),
        # A past month keeps who paid for it, and what was free in it.
        only_columns_change("billing_payerorganization", "until"),
        refuse_changes("billing_trial"),
        refuse_changes("billing_allowanceshare"),
        refuse_emptying("billing_payerorganization"),
        refuse_emptying("billing_trial"),
        refuse_emptying("billing_allowanceshare"),
    ]
