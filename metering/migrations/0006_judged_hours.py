"""A model's name says what its rows are; its table keeps the name that it has."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("metering", "0005_reconciliation")]

    operations = [
        migrations.AlterModelTable("hourstanding", "metering_hourstanding"),
        migrations.RenameModel("HourStanding", "JudgedHour"),
    ]
