import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("provisioning", "0004_scale_and_suspension")]
    operations = [
        migrations.AddField(
            model_name="credential",
            name="generation",
            field=models.PositiveIntegerField(default=1),
        ),
        migrations.AddField(
            model_name="credential",
            name="expires_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="credential",
            name="replaced_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="credential",
            name="replaces",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="successor",
                to="provisioning.credential",
            ),
        ),
        migrations.RemoveConstraint(model_name="credential", name="one_credential_a_name"),
        migrations.AddConstraint(
            model_name="credential",
            constraint=models.UniqueConstraint(
                condition=Q(removed_at=None, replaced_at=None),
                fields=("cluster", "name"),
                name="one_credential_a_name",
            ),
        ),
        migrations.AddIndex(
            model_name="credential",
            index=models.Index(
                condition=Q(removed_at=None, expires_at__isnull=False),
                fields=["expires_at"],
                name="credentials_to_expire",
            ),
        ),
    ]
