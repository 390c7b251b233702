"""Rows of accounts."""

from console.base.accounts.models.api_key import ApiKey
from console.base.accounts.models.attempts import FailedAttempts
from console.base.accounts.models.invitation import Invitation
from console.base.accounts.models.organization import Membership, Organization
from console.base.accounts.models.password_reset import PasswordReset
from console.base.accounts.models.project import Project, RoleBinding
from console.base.accounts.models.second_factor import RecoveryCode, SecondFactor
from console.base.accounts.models.service_account import ServiceAccount
from console.base.accounts.models.session import UserSession
from console.base.accounts.models.signup import AddressEvent
from console.base.accounts.models.traffic import TrafficLimit
from console.base.accounts.models.user import User

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
    "TrafficLimit",
    "User",
    "UserSession",
]
