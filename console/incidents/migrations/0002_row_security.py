"""An organization sees its own incidents, and those of the service as a whole."""

from __future__ import annotations

from django.db import migrations
from django.db.migrations.operations import RunSQL

from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING, enable_rls

SCOPE = f"current_setting('{SETTING}', true)"
OWN = f"organization_id = {SCOPE} OR {SCOPE} = '{EVERY_ORGANIZATION}'"
# Within any organization's scope; outside of all of them nothing is seen.
OF_SERVICE = f"(organization_id IS NULL AND {SCOPE} <> '')"


class Migration(migrations.Migration):
    """Row-level security."""

    dependencies = [("incidents", "0001_initial")]
    operations = [
        enable_rls("incidents_incident"),
        enable_rls("incidents_restartcount"),
        RunSQL(
            sql=f"ALTER POLICY organization ON incidents_incident USING ({OWN} OR {OF_SERVICE})",
            reverse_sql=f"ALTER POLICY organization ON incidents_incident USING ({OWN})",
        ),
    ]
