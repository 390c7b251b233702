from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("provisioning", "0003_produce_suspension_and_deletions")]
    operations = [
        migrations.AddField(
            model_name="cluster",
            name="scale_min",
            field=models.PositiveSmallIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="cluster",
            name="suspend_wanted",
            field=models.BooleanField(default=False),
        ),
        migrations.AlterField(
            model_name="operation",
            name="type",
            field=models.CharField(
                choices=[
                    ("create_cluster", "Create cluster"),
                    ("delete_cluster", "Delete cluster"),
                    ("undelete_cluster", "Undelete cluster"),
                    ("wake_cluster", "Wake cluster"),
                    ("sleep_cluster", "Sleep cluster"),
                    ("suspend_cluster", "Suspend cluster"),
                    ("resume_cluster", "Resume cluster"),
                ],
                max_length=32,
            ),
        ),
    ]
