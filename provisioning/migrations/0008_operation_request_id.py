from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("provisioning", "0007_credential_use"),
    ]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="request_id",
            field=models.CharField(default="-", max_length=64),
        ),
    ]
