"""Devices that a new password forgets, and purposes of mails to an address.

Also counts an address as proved whose owner accepted an invitation: its token came by mail.
"""

from __future__ import annotations

from django.db import migrations, models

PROVED = """
UPDATE accounts_user SET email_verified_at = now()
WHERE email_verified_at IS NULL AND EXISTS (
    SELECT 1 FROM accounts_invitation
    WHERE accounts_invitation.email = accounts_user.email
    AND accounts_invitation.state = 'accepted'
)
"""


class Migration(migrations.Migration):
    """Two columns."""

    dependencies = [("accounts", "0010_traffic_limits")]
    operations = [
        migrations.AddField("user", "devices_since", models.DateTimeField(blank=True, null=True)),
        migrations.AddField(
            "passwordreset",
            "purpose",
            models.CharField(
                choices=[
                    ("reset", "Set a new password"),
                    ("sign_in", "Sign in with a new browser"),
                    ("sign_up", "Somebody signed up with the address again"),
                ],
                default="reset",
                max_length=16,
            ),
        ),
        migrations.RunSQL(PROVED, migrations.RunSQL.noop),
    ]
