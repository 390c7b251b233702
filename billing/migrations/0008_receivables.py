"""What customers owe and what pays it, and the ledger's accounts and entries for that."""

from __future__ import annotations

from functools import partial

import django.db.models.deletion
import django.db.models.expressions
from django.db import migrations, models

import console.base.common.clock
import console.base.common.ids
from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """Six tables of tenants. `0009_guards_of_money` fills and guards them."""

    dependencies = [
        ("accounts", "0009_account_status"),
        ("billing", "0007_missing_invoices"),
    ]

    operations = [
        migrations.CreateModel(
            name="Credit",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "crd"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "external_id",
                    models.CharField(blank=True, max_length=255, null=True, unique=True),
                ),
                ("currency", models.CharField(max_length=3)),
                ("amount_minor", models.BigIntegerField()),
                ("unapplied_minor", models.BigIntegerField()),
                ("reason", models.CharField(max_length=500)),
                ("entered_by", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
            ],
        ),
        migrations.CreateModel(
            name="Dispute",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "dsp"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("external_id", models.CharField(max_length=255, unique=True)),
                ("amount_minor", models.BigIntegerField()),
                ("unapplied_minor", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("won", "Won"), ("lost", "Lost")],
                        default="open",
                        max_length=8,
                    ),
                ),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Payment",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "pay"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "method",
                    models.CharField(
                        choices=[
                            ("card", "Card"),
                            ("transfer", "Bank transfer"),
                            ("other", "Other"),
                        ],
                        max_length=16,
                    ),
                ),
                ("external_id", models.CharField(max_length=255)),
                ("currency", models.CharField(max_length=3)),
                ("amount_minor", models.BigIntegerField()),
                ("unapplied_minor", models.BigIntegerField()),
                ("refunded_minor", models.BigIntegerField(default=0)),
                ("received_at", models.DateTimeField()),
                ("entered_by", models.CharField(max_length=200)),
                ("note", models.CharField(blank=True, max_length=500)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
            ],
        ),
        migrations.CreateModel(
            name="Receivable",
            fields=[
                (
                    "invoice",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="receivable",
                        serialize=False,
                        to="billing.invoice",
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("amount_minor", models.BigIntegerField()),
                ("payable_minor", models.BigIntegerField()),
                ("open_minor", models.BigIntegerField()),
                ("written_off_minor", models.BigIntegerField(default=0)),
                ("due_on", models.DateField(blank=True, null=True)),
                ("reference", models.CharField(max_length=25, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("paid", "Paid"),
                            ("uncollectible", "Uncollectible"),
                            ("void", "Void"),
                        ],
                        default="open",
                        max_length=16,
                    ),
                ),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Refund",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "rfd"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "method",
                    models.CharField(
                        choices=[
                            ("card", "Card"),
                            ("transfer", "Bank transfer"),
                            ("other", "Other"),
                        ],
                        max_length=16,
                    ),
                ),
                ("external_id", models.CharField(max_length=255)),
                ("amount_minor", models.BigIntegerField()),
                ("goodwill_minor", models.BigIntegerField(default=0)),
                ("reason", models.CharField(max_length=500)),
                ("entered_by", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
            ],
        ),
        migrations.CreateModel(
            name="Settlement",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "stl"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("organization_id", models.CharField(max_length=32)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("payment", "Payment"),
                            ("credit", "Credit"),
                            ("credit_note", "Credit note"),
                            ("write_off", "Write-off"),
                            ("refund", "Refund"),
                            ("dispute", "Dispute"),
                            ("reversal", "Reversal"),
                        ],
                        max_length=16,
                    ),
                ),
                ("amount_minor", models.BigIntegerField()),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
            ],
            options={
                "ordering": ("created_at", "id"),
            },
        ),
        migrations.AddField(
            model_name="journalentry",
            name="source_id",
            field=models.CharField(blank=True, max_length=32, null=True),
        ),
        migrations.AlterField(
            model_name="journalentry",
            name="invoice",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="journal_entry",
                to="billing.invoice",
            ),
        ),
        migrations.AlterField(
            model_name="journalentry",
            name="kind",
            field=models.CharField(
                choices=[
                    ("invoice", "Invoice issued"),
                    ("void", "Invoice taken back"),
                    ("release", "Settlements of a void invoice undone"),
                    ("payment", "Payment"),
                    ("credit_granted", "Credit granted"),
                    ("credit_applied", "Credit used for invoices"),
                    ("refund", "Payment refunded"),
                    ("dispute", "Payment disputed"),
                    ("dispute_won", "Dispute won"),
                    ("dispute_lost", "Dispute lost"),
                    ("write_off", "Invoice written off"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="posting",
            name="account",
            field=models.CharField(
                choices=[
                    ("receivable", "Receivable"),
                    ("revenue", "Revenue"),
                    ("tax", "Tax owed"),
                    ("bank", "Bank"),
                    ("card_clearing", "Money at Stripe"),
                    ("customer_credit", "Credit of customers"),
                    ("bad_debt", "Written off"),
                    ("goodwill", "Goodwill"),
                    ("disputed", "Disputed"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            model_name="journalentry",
            constraint=models.UniqueConstraint(
                fields=("kind", "source_id"), name="one_entry_an_event"
            ),
        ),
        migrations.AddConstraint(
            model_name="journalentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("invoice__isnull", False), ("source_id__isnull", True)),
                    models.Q(("invoice__isnull", True), ("source_id__isnull", False)),
                    _connector="OR",
                ),
                name="entries_have_one_cause",
            ),
        ),
        migrations.AddField(
            model_name="credit",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="credits",
                to="accounts.organization",
            ),
        ),
        migrations.AddField(
            model_name="dispute",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="disputes",
                to="accounts.organization",
            ),
        ),
        migrations.AddField(
            model_name="payment",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="payments",
                to="accounts.organization",
            ),
        ),
        migrations.AddField(
            model_name="dispute",
            name="payment",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="disputes",
                to="billing.payment",
            ),
        ),
        migrations.AddField(
            model_name="receivable",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="receivables",
                to="accounts.organization",
            ),
        ),
        migrations.AddField(
            model_name="refund",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="refunds",
                to="accounts.organization",
            ),
        ),
        migrations.AddField(
            model_name="refund",
            name="payment",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="refunds",
                to="billing.payment",
            ),
        ),
        migrations.AddField(
            model_name="settlement",
            name="credit",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="settlements",
                to="billing.credit",
            ),
        ),
        migrations.AddField(
            model_name="settlement",
            name="dispute",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="settlements",
                to="billing.dispute",
            ),
        ),
        migrations.AddField(
            model_name="settlement",
            name="entry",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="settlements",
                to="billing.journalentry",
            ),
        ),
        migrations.AddField(
            model_name="settlement",
            name="payment",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="settlements",
                to="billing.payment",
            ),
        ),
        migrations.AddField(
            model_name="settlement",
            name="receivable",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="settlements",
                to="billing.receivable",
            ),
        ),
        migrations.AddIndex(
            model_name="credit",
            index=models.Index(
                fields=["organization", "-created_at", "-id"], name="credits_newest"
            ),
        ),
        migrations.AddIndex(
            model_name="credit",
            index=models.Index(
                condition=models.Q(("unapplied_minor__gt", 0)),
                fields=["organization", "created_at"],
                name="credits_unapplied",
            ),
        ),
        migrations.AddConstraint(
            model_name="credit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("amount_minor__gt", 0),
                    ("unapplied_minor__gte", 0),
                    ("unapplied_minor__lte", models.F("amount_minor")),
                ),
                name="credits_pay_their_amount",
            ),
        ),
        migrations.AddIndex(
            model_name="payment",
            index=models.Index(
                fields=["organization", "-created_at", "-id"], name="payments_newest"
            ),
        ),
        migrations.AddIndex(
            model_name="payment",
            index=models.Index(
                condition=models.Q(("unapplied_minor__gt", 0)),
                fields=["organization", "created_at"],
                name="payments_unapplied",
            ),
        ),
        migrations.AddConstraint(
            model_name="payment",
            constraint=models.UniqueConstraint(
                fields=("method", "external_id"), name="one_payment_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="payment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("amount_minor__gt", 0),
                    ("refunded_minor__gte", 0),
                    ("unapplied_minor__gte", 0),
                    (
                        "amount_minor__gte",
                        django.db.models.expressions.CombinedExpression(
                            models.F("unapplied_minor"), "+", models.F("refunded_minor")
                        ),
                    ),
                ),
                name="payments_pay_their_amount",
            ),
        ),
        migrations.AddConstraint(
            model_name="dispute",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("amount_minor__gt", 0),
                    ("unapplied_minor__gte", 0),
                    ("unapplied_minor__lte", models.F("amount_minor")),
                ),
                name="disputes_are_over_their_amount",
            ),
        ),
        migrations.AddConstraint(
            model_name="dispute",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_at__isnull", True), ("state", "open")),
                    models.Q(
                        models.Q(("state", "open"), _negated=True),
                        ("closed_at__isnull", False),
                        ("unapplied_minor", 0),
                    ),
                    _connector="OR",
                ),
                name="closed_disputes_hold_nothing",
            ),
        ),
        migrations.AddIndex(
            model_name="receivable",
            index=models.Index(
                condition=models.Q(("state", "open")),
                fields=["organization", "created_at", "invoice"],
                name="receivables_open",
            ),
        ),
        migrations.AddIndex(
            model_name="receivable",
            index=models.Index(
                condition=models.Q(("state", "open")), fields=["due_on"], name="receivables_due"
            ),
        ),
        migrations.AddIndex(
            model_name="receivable",
            index=models.Index(fields=["-created_at", "-invoice"], name="receivables_newest"),
        ),
        migrations.AddConstraint(
            model_name="receivable",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("amount_minor__gt", 0),
                    (
                        "amount_minor__gte",
                        django.db.models.expressions.CombinedExpression(
                            models.F("open_minor"), "+", models.F("written_off_minor")
                        ),
                    ),
                    ("open_minor__gte", 0),
                    ("payable_minor__gte", 0),
                    ("payable_minor__lte", models.F("amount_minor")),
                    ("written_off_minor__gte", 0),
                ),
                name="open_is_a_part_of_the_amount",
            ),
        ),
        migrations.AddConstraint(
            model_name="receivable",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("open_minor__gt", 0), ("settled_at__isnull", True), ("state", "open")
                    ),
                    models.Q(
                        models.Q(("state", "open"), _negated=True),
                        ("open_minor", 0),
                        ("settled_at__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="open_receivables_have_an_open_amount",
            ),
        ),
        migrations.AddConstraint(
            model_name="refund",
            constraint=models.UniqueConstraint(
                fields=("method", "external_id"), name="one_refund_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="refund",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("amount_minor__gt", 0),
                    ("goodwill_minor__gte", 0),
                    ("goodwill_minor__lte", models.F("amount_minor")),
                ),
                name="refunds_give_back_something",
            ),
        ),
        migrations.AddConstraint(
            model_name="settlement",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount_minor", 0), _negated=True), name="settlements_settle"
            ),
        ),
        migrations.AddConstraint(
            model_name="settlement",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("credit__isnull", True), ("payment__isnull", True)),
                    models.Q(("dispute__isnull", True), ("payment__isnull", True)),
                    models.Q(("credit__isnull", True), ("dispute__isnull", True)),
                    _connector="OR",
                ),
                name="settlements_have_one_source",
            ),
        ),
        enable_rls("billing_receivable"),
        enable_rls("billing_payment"),
        enable_rls("billing_credit"),
        enable_rls("billing_refund"),
        enable_rls("billing_dispute"),
        enable_rls("billing_settlement"),
    ]
