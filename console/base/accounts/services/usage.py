"""The functions that count how much of each limit of accounts is used, by the limit's name."""

from __future__ import annotations

from console.base.accounts.services.api_keys import keys_used
from console.base.accounts.services.invitations import invitations_used, members_used
from console.base.accounts.services.projects import projects_used
from console.base.accounts.services.role_bindings import role_bindings_used
from console.base.accounts.services.service_accounts import service_accounts_used
from console.base.limits.usage import Reader

READERS: dict[str, Reader] = {
    "api_keys": keys_used,
    "projects": projects_used,
    "members": members_used,
    "invitations_per_day": invitations_used,
    "service_accounts": service_accounts_used,
    "role_bindings": role_bindings_used,
}
