"""Mails about trials."""

from __future__ import annotations

from functools import partial

import django.db.models.deletion
from django.db import migrations, models

import console.base.common.clock
import console.base.common.ids
from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """One table."""

    dependencies = [
        ("accounts", "0010_traffic_limits"),
        ("billing", "0012_allowances"),
    ]

    operations = [
        migrations.CreateModel(
            name="TrialNotice",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "trn"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("nearly_used", "Little of it is left"),
                            ("used_up", "It is used up, and traffic is refused"),
                        ],
                        max_length=16,
                    ),
                ),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="trial_notices",
                        to="accounts.organization",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "nearly_used")),
                        fields=("organization",),
                        name="little_left_is_said_once",
                    )
                ],
            },
        ),
        enable_rls("billing_trialnotice"),
    ]
