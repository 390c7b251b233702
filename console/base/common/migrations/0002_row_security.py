"""Rows of the shared tables are seen in their organization's scope; the audit log only grows."""

from __future__ import annotations

from django.db import migrations

from console.base.common.tenancy import append_only, enable_rls


class Migration(migrations.Migration):
    """Row-level security."""

    dependencies = [("common", "0001_initial")]
    operations = [
        enable_rls("common_auditentry"),
        enable_rls("common_idempotencyrecord"),
        enable_rls("common_outboxentry"),
        append_only("common_auditentry"),
    ]
