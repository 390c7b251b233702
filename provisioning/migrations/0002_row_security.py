"""Rows of tenants are seen in their organization's scope. Cells and their ports are nobody's."""

from __future__ import annotations

from django.db import migrations

from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """Row-level security."""

    dependencies = [("provisioning", "0001_initial")]
    operations = [
        enable_rls("provisioning_cluster"),
        enable_rls("provisioning_operation"),
        enable_rls("provisioning_credential"),
    ]
