from django.db import migrations, models

from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING

# Of clusters that are deleted at the moment; when others were before is not known.
SINCE_DELETED = """
UPDATE provisioning_cluster
SET deletions = jsonb_build_array(
    jsonb_build_array(floor(extract(epoch FROM deleted_at) * 1000)::bigint, NULL)
)
WHERE deleted_at IS NOT NULL
"""


class Migration(migrations.Migration):
    dependencies = [("provisioning", "0002_row_security")]
    operations = [
        migrations.AddField(
            model_name="cluster",
            name="deletions",
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name="cluster",
            name="produce_suspended_reason",
            field=models.CharField(blank=True, max_length=500, null=True),
        ),
        migrations.RunSQL(
            sql=[
                f"SELECT set_config('{SETTING}', '{EVERY_ORGANIZATION}', true)",
                SINCE_DELETED,
                f"SELECT set_config('{SETTING}', '', true)",
            ],
            reverse_sql=migrations.RunSQL.noop,
        ),
    ]
