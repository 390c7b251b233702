"""Rows are seen in their organization's scope."""

from __future__ import annotations

from django.db import migrations

from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """Row-level security."""

    dependencies = [("limits", "0001_initial")]
    operations = [enable_rls("limits_limitrequest"), enable_rls("limits_limitgrant")]
