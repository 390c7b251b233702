"""Every cluster lies in a project: those that there are, in their organization's default one."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING

INTO_DEFAULT = """
UPDATE provisioning_cluster AS cluster SET project_id = project.id
FROM accounts_project AS project
WHERE project.organization_id = cluster.organization_id AND project.is_default
"""
PROTECTED = django.db.models.deletion.PROTECT


class Migration(migrations.Migration):
    """A column, its values, and that it has one."""

    dependencies = [
        ("accounts", "0007_default_projects"),
        ("provisioning", "0005_credential_rotation"),
    ]
    operations = [
        migrations.AddField(
            model_name="cluster",
            name="project",
            field=models.ForeignKey(
                null=True, on_delete=PROTECTED, related_name="clusters", to="accounts.project"
            ),
        ),
        migrations.RunSQL(
            sql=[
                f"SELECT set_config('{SETTING}', '{EVERY_ORGANIZATION}', true)",
                INTO_DEFAULT,
                f"SELECT set_config('{SETTING}', '', true)",
                # The table changes again below, which no check may wait for.
                "SET CONSTRAINTS ALL IMMEDIATE",
            ],
            reverse_sql=migrations.RunSQL.noop,
        ),
        migrations.AlterField(
            model_name="cluster",
            name="project",
            field=models.ForeignKey(
                on_delete=PROTECTED, related_name="clusters", to="accounts.project"
            ),
        ),
    ]
