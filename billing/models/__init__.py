"""The models of billing, one file a noun."""

from billing.models.budget import Budget, BudgetEvent
from billing.models.prices import Price, PriceVersion

__all__ = ["Budget", "BudgetEvent", "Price", "PriceVersion"]
