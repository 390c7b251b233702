"""The role `reader`. Nobody has it yet: viewers and billing no longer read records.

Who of them did is not known: until now no brokers counted by REST's callers. So nobody is given a
right that the organization's owner did not give.
"""

from __future__ import annotations

from django.db import migrations, models

ROLES = [
    ("owner", "Owner"),
    ("admin", "Admin"),
    ("developer", "Developer"),
    ("billing", "Billing"),
    ("reader", "Reader"),
    ("viewer", "Viewer"),
    ("member", "Member"),
]
HAVE_ROLES = ("invitation", "membership", "rolebinding", "serviceaccount")


class Migration(migrations.Migration):
    """The values of columns that have a role."""

    dependencies = (("accounts", "0011_addresses_that_are_proved"),)

    operations = (
        migrations.AlterField(
            model_name="apikey",
            name="role",
            field=models.CharField(blank=True, choices=ROLES, max_length=16),
        ),
        *(
            migrations.AlterField(
                model_name=model,
                name="role",
                field=models.CharField(choices=ROLES, max_length=16),
            )
            for model in HAVE_ROLES
        ),
    )
