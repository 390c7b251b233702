from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("common", "0004_outbox_request_id"),
    ]

    operations = [
        migrations.CreateModel(
            name="HeldLock",
            fields=[
                ("key", models.BigIntegerField(primary_key=True, serialize=False)),
                ("holder", models.CharField(max_length=40)),
                ("until", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
