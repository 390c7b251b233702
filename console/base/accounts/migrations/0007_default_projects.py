"""Row security of the new tables, and a default project for each organization that there is."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from console.base.common.ids import new_id
from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING, enable_rls

SCOPE = f"SELECT set_config('{SETTING}', %s, true)"


def make_default_projects(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Makes a default project for each organization that has none."""
    alias = schema_editor.connection.alias
    project = apps.get_model("accounts", "Project")
    organizations = apps.get_model("accounts", "Organization").objects.using(alias)
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(SCOPE, [EVERY_ORGANIZATION])
        without = list(organizations.exclude(projects__is_default=True))
        project.objects.using(alias).bulk_create(
            project(id=new_id("prj"), organization=organization, name="Default", is_default=True)
            for organization in without
        )
        cursor.execute(SCOPE, [""])


class Migration(migrations.Migration):
    """Row-level security, then rows."""

    dependencies = [("accounts", "0006_projects_and_people")]
    operations = [
        enable_rls("accounts_project"),
        enable_rls("accounts_rolebinding"),
        enable_rls("accounts_serviceaccount"),
        enable_rls("accounts_invitation"),
        migrations.RunPython(make_default_projects, migrations.RunPython.noop),
    ]
