"""Cards, payment attempts, dunning, Stripe's events, and what does not reconcile."""

from __future__ import annotations

from functools import partial

import django.db.models.deletion
from django.db import migrations, models

from console.base.common.clock import now
from console.base.common.ids import new_id
from console.base.common.tenancy import enable_rls


def key_of(kind: str) -> models.CharField[str, str]:
    """The column of the ids of a kind."""
    return models.CharField(
        default=partial(new_id, kind),
        editable=False,
        max_length=32,
        primary_key=True,
        serialize=False,
    )


class Migration(migrations.Migration):
    """Tables of tenants, and three of the service's own: events, the cursor, comparisons."""

    dependencies = [
        ("accounts", "0009_account_status"),
        ("billing", "0009_guards_of_money"),
    ]

    operations = [
        migrations.CreateModel(
            name="CardAccount",
            fields=[
                (
                    "organization",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="card_account",
                        serialize=False,
                        to="accounts.organization",
                    ),
                ),
                (
                    "customer_id",
                    models.CharField(blank=True, max_length=255, null=True, unique=True),
                ),
                ("method_id", models.CharField(blank=True, max_length=255)),
                ("brand", models.CharField(blank=True, max_length=32)),
                ("last4", models.CharField(blank=True, max_length=4)),
                ("expires_month", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("expires_year", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("fingerprint", models.CharField(blank=True, max_length=64)),
                ("setup_id", models.CharField(blank=True, max_length=255)),
                ("check_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=now)),
                ("updated_at", models.DateTimeField(default=now)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("check_at__isnull", False)),
                        fields=["check_at"],
                        name="card_accounts_to_check",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PaymentAttempt",
            fields=[
                (
                    "id",
                    models.CharField(
                        editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="payment_attempts",
                        to="accounts.organization",
                    ),
                ),
                (
                    "first_invoice",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="payment_attempts",
                        to="billing.invoice",
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("key", models.CharField(max_length=255, unique=True)),
                (
                    "origin",
                    models.CharField(
                        choices=[("collection", "By the service"), ("customer", "By the customer")],
                        max_length=16,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("prepared", "Prepared"),
                            ("sent", "Sent"),
                            ("unknown", "Not known"),
                            ("requires_action", "Waits for the customer"),
                            ("processing", "Processing"),
                            ("failed", "Failed"),
                            ("canceled", "Canceled"),
                            ("succeeded", "Succeeded"),
                        ],
                        default="prepared",
                        max_length=16,
                    ),
                ),
                ("amount_minor", models.BigIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("customer_id", models.CharField(max_length=255)),
                ("method_id", models.CharField(max_length=255)),
                ("intent_id", models.CharField(blank=True, max_length=255, null=True, unique=True)),
                ("action_url", models.CharField(blank=True, max_length=2048)),
                (
                    "failure",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("declined", "The card was declined"),
                            ("needs_authentication", "The bank asks the customer to authenticate"),
                            ("no_payment_method", "There is no card"),
                            ("refused", "Stripe refused the request"),
                            ("overdue", "It was not paid in time"),
                        ],
                        max_length=24,
                    ),
                ),
                ("failure_code", models.CharField(blank=True, max_length=64)),
                ("failure_message", models.CharField(blank=True, max_length=500)),
                ("last_error", models.CharField(blank=True, max_length=500)),
                ("calls", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=now)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
                (
                    "check_at",
                    models.DateTimeField(blank=True, default=now, null=True),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["organization", "-created_at", "-id"], name="attempts_newest"
                    ),
                    models.Index(fields=["-created_at", "-id"], name="attempts_newest_of_all"),
                    models.Index(
                        condition=models.Q(("check_at__isnull", False)),
                        fields=["check_at"],
                        name="attempts_to_check",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                ("prepared", "sent", "unknown", "requires_action", "processing"),
                            )
                        ),
                        fields=("organization",),
                        name="one_live_attempt",
                    ),
                    models.UniqueConstraint(
                        fields=("first_invoice", "number"), name="one_attempt_a_number"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount_minor__gt", 0)), name="attempts_charge"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("settled_at__isnull", True),
                                (
                                    "state__in",
                                    (
                                        "prepared",
                                        "sent",
                                        "unknown",
                                        "requires_action",
                                        "processing",
                                    ),
                                ),
                            ),
                            models.Q(
                                models.Q(
                                    (
                                        "state__in",
                                        (
                                            "prepared",
                                            "sent",
                                            "unknown",
                                            "requires_action",
                                            "processing",
                                        ),
                                    ),
                                    _negated=True,
                                ),
                                ("settled_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="ended_attempts_are_settled",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AttemptInvoice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("organization_id", models.CharField(max_length=32)),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="invoices",
                        to="billing.paymentattempt",
                    ),
                ),
                (
                    "invoice",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="billing.invoice",
                    ),
                ),
                ("amount_minor", models.BigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("attempt", "invoice"), name="one_row_an_invoice"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RefundAttempt",
            fields=[
                ("id", key_of("rfa")),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="refund_attempts",
                        to="accounts.organization",
                    ),
                ),
                (
                    "payment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="refund_attempts",
                        to="billing.payment",
                    ),
                ),
                ("request_id", models.CharField(max_length=255, unique=True)),
                ("intent_id", models.CharField(max_length=255)),
                ("amount_minor", models.BigIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("reason", models.CharField(max_length=500)),
                ("entered_by", models.CharField(max_length=200)),
                ("is_goodwill", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("prepared", "Prepared"),
                            ("sent", "Sent"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                        ],
                        default="prepared",
                        max_length=16,
                    ),
                ),
                ("refund_id", models.CharField(blank=True, max_length=255, null=True, unique=True)),
                ("last_error", models.CharField(blank=True, max_length=500)),
                ("calls", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=now)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                (
                    "check_at",
                    models.DateTimeField(blank=True, default=now, null=True),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("check_at__isnull", False)),
                        fields=["check_at"],
                        name="refunds_to_check",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("amount_minor__gt", 0)), name="refunds_give_back"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="UnpaidInvoice",
            fields=[
                (
                    "invoice",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="unpaid",
                        serialize=False,
                        to="billing.invoice",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="unpaid_invoices",
                        to="accounts.organization",
                    ),
                ),
                ("since", models.DateTimeField(blank=True, null=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                (
                    "failure",
                    models.CharField(
                        choices=[
                            ("declined", "The card was declined"),
                            ("needs_authentication", "The bank asks the customer to authenticate"),
                            ("no_payment_method", "There is no card"),
                            ("refused", "Stripe refused the request"),
                            ("overdue", "It was not paid in time"),
                        ],
                        max_length=24,
                    ),
                ),
                ("next_try_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=["organization", "since"],
                        name="unpaid_invoices_open",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DunningNotice",
            fields=[
                ("id", key_of("dun")),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dunning_notices",
                        to="accounts.organization",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("payment_failed", "A payment failed"),
                            ("overdue", "An invoice is overdue"),
                            ("announced", "A step is announced"),
                            ("acted", "A step was taken"),
                            ("lifted", "Everything is paid"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "stage",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("paid", "Nothing is overdue"),
                            ("unpaid", "Unpaid"),
                            ("suspended", "Produce and fetch are refused"),
                            ("asleep", "Clusters sleep"),
                            ("deleted", "Clusters are deleted"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "failure",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("declined", "The card was declined"),
                            ("needs_authentication", "The bank asks the customer to authenticate"),
                            ("no_payment_method", "There is no card"),
                            ("refused", "Stripe refused the request"),
                            ("overdue", "It was not paid in time"),
                        ],
                        max_length=24,
                    ),
                ),
                ("acts_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=now)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("failed_at", models.DateTimeField(blank=True, null=True)),
                ("recipients", models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["organization", "-created_at", "-id"], name="notices_newest"
                    ),
                    models.Index(
                        condition=models.Q(("sent_at__isnull", True)),
                        fields=["created_at"],
                        name="notices_due",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Dunning",
            fields=[
                (
                    "organization",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="dunning",
                        serialize=False,
                        to="accounts.organization",
                    ),
                ),
                (
                    "stage",
                    models.CharField(
                        choices=[
                            ("paid", "Nothing is overdue"),
                            ("unpaid", "Unpaid"),
                            ("suspended", "Produce and fetch are refused"),
                            ("asleep", "Clusters sleep"),
                            ("deleted", "Clusters are deleted"),
                        ],
                        default="paid",
                        max_length=16,
                    ),
                ),
                ("since", models.DateTimeField(blank=True, null=True)),
                (
                    "announcement",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="billing.dunningnotice",
                    ),
                ),
                ("put_to_sleep", models.BooleanField(default=False)),
                ("check_at", models.DateTimeField(blank=True, null=True)),
                ("updated_at", models.DateTimeField(default=now)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("check_at__isnull", False)),
                        fields=["check_at"],
                        name="dunnings_to_check",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StripeEvent",
            fields=[
                ("id", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("type", models.CharField(max_length=100)),
                ("object_id", models.CharField(blank=True, max_length=255)),
                ("happened_at", models.DateTimeField()),
                ("received_at", models.DateTimeField(default=now)),
                ("by_webhook", models.BooleanField(default=True)),
                ("handled_at", models.DateTimeField(blank=True, null=True)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("last_error", models.CharField(blank=True, max_length=500)),
                (
                    "check_at",
                    models.DateTimeField(blank=True, default=now, null=True),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("check_at__isnull", False)),
                        fields=["check_at"],
                        name="events_to_check",
                    ),
                    models.Index(fields=["-happened_at"], name="events_newest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="StripeCursor",
            fields=[
                ("name", models.CharField(max_length=16, primary_key=True, serialize=False)),
                ("read_to", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="MoneyReconciliation",
            fields=[
                ("id", key_of("rec")),
                ("created_at", models.DateTimeField(default=now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("begins_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("compared", models.PositiveIntegerField(default=0)),
                ("differences", models.PositiveIntegerField(default=0)),
                ("reason", models.CharField(blank=True, max_length=500)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["-created_at", "-id"], name="money_reconciliations_newest")
                ],
            },
        ),
        migrations.CreateModel(
            name="MoneyDifference",
            fields=[
                ("id", key_of("dif")),
                ("organization_id", models.CharField(blank=True, max_length=32)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("payment_unknown", "Stripe has a payment that is not entered"),
                            ("payment_absent", "A payment is entered that Stripe does not have"),
                            ("refund_unknown", "Stripe has a refund that is not entered"),
                            ("refund_absent", "A refund is entered that Stripe does not have"),
                            ("dispute_unknown", "Stripe has a dispute that is not entered"),
                            ("amount_differs", "Stripe has another amount"),
                            ("charged_twice", "An invoice was charged twice"),
                            ("ledger_differs", "The ledger and the receivables disagree"),
                            ("clearing_differs", "The ledger and Stripe disagree"),
                        ],
                        max_length=24,
                    ),
                ),
                ("subject", models.CharField(max_length=255)),
                ("ours_minor", models.BigIntegerField(blank=True, null=True)),
                ("theirs_minor", models.BigIntegerField(blank=True, null=True)),
                ("currency", models.CharField(blank=True, max_length=3)),
                ("happened_at", models.DateTimeField()),
                ("created_at", models.DateTimeField(default=now)),
                ("seen_at", models.DateTimeField(default=now)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["-created_at", "-id"], name="differences_newest")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("kind", "subject"),
                        name="one_open_difference",
                    )
                ],
            },
        ),
        *(
            enable_rls(f"billing_{name}")
            for name in (
                *("cardaccount", "paymentattempt", "attemptinvoice", "refundattempt"),
                *("unpaidinvoice", "dunningnotice", "dunning", "moneydifference"),
            )
        ),
    ]
