"""A field's name says what it holds; its column keeps the name that it has."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0008_service_account_makers_and_project_roles")]

    operations = [
        migrations.AlterField(
            "organization",
            "standing",
            models.CharField(
                choices=[("active", "Active"), ("suspended", "Suspended")],
                db_column="standing",
                default="active",
                max_length=16,
            ),
        ),
        migrations.RenameField("organization", "standing", "account_status"),
    ]
