"""A share for each revision of an invoice, and traffic that nobody agreed to pay."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Columns, each with a value for the rows that are there."""

    dependencies = [("billing", "0013_trial_notices")]

    operations = [
        migrations.AddField(
            model_name="payerorganization",
            name="past_trial",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="allowanceshare",
            name="past_trial",
            field=models.DecimalField(decimal_places=0, default=0, max_digits=38),
        ),
        migrations.AddField(
            model_name="allowanceshare",
            name="revision",
            field=models.PositiveIntegerField(default=1),
        ),
        migrations.RemoveConstraint(model_name="allowanceshare", name="one_share_a_meter"),
        migrations.AddConstraint(
            model_name="allowanceshare",
            constraint=models.UniqueConstraint(
                fields=("organization", "month", "meter", "revision"), name="one_share_a_meter"
            ),
        ),
        migrations.RemoveConstraint(model_name="allowanceshare", name="shares_are_not_negative"),
        migrations.AddConstraint(
            model_name="allowanceshare",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("of_trial__gte", 0),
                    ("of_trial__lte", models.F("quantity")),
                    ("past_trial__gte", 0),
                    ("past_trial__lte", models.F("quantity")),
                    ("quantity__gte", 0),
                ),
                name="shares_are_not_negative",
            ),
        ),
    ]
