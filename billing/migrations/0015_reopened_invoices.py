"""Invoices that were paid and are owed again: one more reason to be unpaid."""

from __future__ import annotations

from django.db import migrations, models

KINDS = [
    ("declined", "The card was declined"),
    ("needs_authentication", "The bank asks the customer to authenticate"),
    ("no_payment_method", "There is no card"),
    ("refused", "Stripe refused the request"),
    ("overdue", "It was not paid in time"),
    ("reopened", "Its payment was given back, or taken back by its bank"),
]


class Migration(migrations.Migration):
    """Choices alone: no table changes."""

    dependencies = [("billing", "0014_partial_shares")]

    operations = [
        migrations.AlterField(
            model_name="dunningnotice",
            name="failure",
            field=models.CharField(blank=True, choices=KINDS, max_length=24),
        ),
        migrations.AlterField(
            model_name="paymentattempt",
            name="failure",
            field=models.CharField(blank=True, choices=KINDS, max_length=24),
        ),
        migrations.AlterField(
            model_name="unpaidinvoice",
            name="failure",
            field=models.CharField(choices=KINDS, max_length=24),
        ),
    ]
