"""The models of billing, one file a noun."""

from billing.models.prices import Price, PriceVersion

__all__ = ["Price", "PriceVersion"]
