"""Rows of accounts."""

from console.accounts.models.api_key import ApiKey
from console.accounts.models.attempts import FailedAttempts
from console.accounts.models.invitation import Invitation
from console.accounts.models.organization import Membership, Organization
from console.accounts.models.password_reset import PasswordReset
from console.accounts.models.project import Project, RoleBinding
from console.accounts.models.second_factor import RecoveryCode, SecondFactor
from console.accounts.models.service_account import ServiceAccount
from console.accounts.models.session import UserSession
from console.accounts.models.signup import AddressEvent
from console.accounts.models.user import User

__all__ = [
    "AddressEvent",
    "ApiKey",
    "FailedAttempts",
    "Invitation",
    "Membership",
    "Organization",
    "PasswordReset",
    "Project",
    "RecoveryCode",
    "RoleBinding",
    "SecondFactor",
    "ServiceAccount",
    "User",
    "UserSession",
]
