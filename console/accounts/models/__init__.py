"""Rows of accounts."""

from console.accounts.models.api_key import ApiKey
from console.accounts.models.organization import Membership, Organization
from console.accounts.models.signup import AddressEvent
from console.accounts.models.user import User

__all__ = ["AddressEvent", "ApiKey", "Membership", "Organization", "User"]
