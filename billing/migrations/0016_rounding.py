"""How an invoice's amounts were rounded: those from before stay as they are, line by line."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """One column, whose default is what programs from before it do."""

    dependencies = [("billing", "0015_reopened_invoices")]

    operations = [
        migrations.AddField(
            model_name="invoice",
            name="rounding",
            field=models.CharField(
                choices=[("line", "Each line"), ("meter", "The sum of each meter and price")],
                db_default="line",
                max_length=8,
            ),
        ),
    ]
