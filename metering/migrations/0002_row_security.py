"""Rows of tenants are seen in their organization's scope; what invoices stand on only grows."""

from __future__ import annotations

from django.db import migrations

from console.base.common.tenancy import append_only, enable_rls

# Grants bind the serving role; this binds the owner too.
REFUSE = """
CREATE FUNCTION metering_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are only ever added', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER metering_usagerow_immutable BEFORE UPDATE OR DELETE ON metering_usagerow
    FOR EACH ROW EXECUTE FUNCTION metering_refuse_change();
CREATE TRIGGER metering_rolluprun_final BEFORE UPDATE OR DELETE ON metering_rolluprun
    FOR EACH ROW WHEN (OLD.state <> 'running') EXECUTE FUNCTION metering_refuse_change();
"""
ALLOW = """
DROP TRIGGER metering_rolluprun_final ON metering_rolluprun;
DROP TRIGGER metering_usagerow_immutable ON metering_usagerow;
DROP FUNCTION metering_refuse_change();
"""


class Migration(migrations.Migration):
    """Row-level security, append-only tables, a staging table that costs no log."""

    dependencies = [("metering", "0001_initial")]
    operations = [
        enable_rls("metering_usagerow"),
        enable_rls("metering_provisionalminute"),
        enable_rls("metering_hourstanding"),
        enable_rls("metering_topicname"),
        enable_rls("metering_filecoverage"),
        enable_rls("metering_lanecoverage"),
        enable_rls("metering_clustercoverage"),
        append_only("metering_usagerow"),
        append_only("metering_qualityresult"),
        migrations.RunSQL(REFUSE, ALLOW),
        migrations.RunSQL(
            "ALTER TABLE metering_stagedrow SET UNLOGGED",
            "ALTER TABLE metering_stagedrow SET LOGGED",
        ),
    ]
