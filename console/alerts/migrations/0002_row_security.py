"""An organization sees its own alerts."""

from __future__ import annotations

from django.db import migrations

from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """Row-level security."""

    dependencies = [("alerts", "0001_initial")]
    operations = [enable_rls("alerts_alert")]
