"""A collector, and payers."""

import pytest

from billing.allowances.payers import assign_payer
from billing.choices import PayerKind
from tests.billing.receivables import conftest as receivables

collector = receivables.collector


@pytest.fixture
def paid_by():
    """Has a card pay for an organization: `paid_by(organization_id, "fingerprint")`."""

    def assign(organization_id, fingerprint):
        return assign_payer(
            organization_id=organization_id, kind=PayerKind.CARD, fingerprint=fingerprint
        )

    return assign
