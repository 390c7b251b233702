"""The payers of attempts that were made before it was kept, by who paid for the organization then.

What these charges came to proves the payers. It is a migration of its own, as PostgreSQL changes no
table within a transaction that has changed its rows.
"""

from __future__ import annotations

from django.db import migrations

from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING

PAYERS_OF_ATTEMPTS = (
    f"SELECT set_config('{SETTING}', '{EVERY_ORGANIZATION}', true)",
    """
    UPDATE billing_paymentattempt AS attempt SET payer_id = link.payer_id
    FROM billing_payerorganization AS link
    WHERE link.organization_id = attempt.organization_id AND link.since <= attempt.created_at
      AND (link.until IS NULL OR link.until > attempt.created_at)
    """,
    f"SELECT set_config('{SETTING}', '', true)",
)


class Migration(migrations.Migration):
    """Rows alone."""

    dependencies = [("billing", "0017_payers_that_owe")]

    operations = [migrations.RunSQL(PAYERS_OF_ATTEMPTS, migrations.RunSQL.noop)]
