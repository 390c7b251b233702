"""What service accounts made, so that it ends with them; roles in projects of an invitation."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

ACCOUNT = "accounts.serviceaccount"


class Migration(migrations.Migration):
    dependencies = (("accounts", "0007_default_projects"),)

    operations = (
        migrations.AddField(
            model_name="apikey",
            name="created_by_account",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=ACCOUNT,
            ),
        ),
        migrations.AddField(
            model_name="invitation",
            name="invited_by_account",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=ACCOUNT,
            ),
        ),
        migrations.AddField(
            model_name="invitation",
            name="project_roles",
            field=models.JSONField(blank=True, default=list),
        ),
    )
