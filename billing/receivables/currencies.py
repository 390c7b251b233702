"""In which currency a person enters money of an organization."""

from __future__ import annotations

from billing.models import PriceVersion, Receivable
from billing.periods import month_of
from console.base.common.clock import now
from console.base.common.errors import FieldError, ValidationFailed


def require_currency(organization_id: str, currency: str) -> None:
    """Raises `ValidationFailed` unless prices are in the currency, or the organization owed in it.

    Money in another one would pay nothing, and no page would show it.
    """
    priced = PriceVersion.objects.in_force(month_of(now())).currency
    owed = Receivable.objects.for_organization(organization_id).filter(currency=currency)
    if currency != priced and not owed.exists():
        detail = f"Prices are in {priced}, and nothing was ever owed in {currency}."
        raise ValidationFailed(errors=[FieldError("/currency", "invalid", detail)])
