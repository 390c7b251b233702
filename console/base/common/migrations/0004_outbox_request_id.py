from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("common", "0003_audit_filters"),
    ]

    operations = [
        migrations.AddField(
            model_name="outboxentry",
            name="request_id",
            field=models.CharField(default="-", max_length=64),
        ),
    ]
