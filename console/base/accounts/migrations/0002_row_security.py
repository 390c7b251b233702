"""Rows of accounts are seen in their organization's scope. Users belong to no single one."""

from __future__ import annotations

from django.db import migrations

from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """Row-level security."""

    dependencies = [("accounts", "0001_initial")]
    operations = [
        enable_rls("accounts_organization", column="id"),
        enable_rls("accounts_membership"),
        enable_rls("accounts_apikey"),
    ]
