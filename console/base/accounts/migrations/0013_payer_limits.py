"""One more reason to limit traffic: a card that has to prove that it pays."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Choices alone: no table changes."""

    dependencies = [("accounts", "0012_reader_role")]

    operations = [
        migrations.AlterField(
            model_name="trafficlimit",
            name="source",
            field=models.CharField(
                choices=[
                    ("unpaid", "An invoice is unpaid"),
                    ("allowance", "The free allowance is used up"),
                    ("payer", "The card has to prove that it pays"),
                    ("budget", "A budget is used up"),
                ],
                max_length=16,
            ),
        ),
    ]
