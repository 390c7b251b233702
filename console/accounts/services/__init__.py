"""The only writers of accounts' rows, and who a credential belongs to."""

from console.accounts.services.api_keys import CreatedKey, create_api_key, revoke_api_key
from console.accounts.services.authentication import actor_of_user, authenticate_key
from console.accounts.services.limits import purge_address_events
from console.accounts.services.organizations import (
    billing_addresses,
    set_produce_suspension,
    set_standing,
    update_organization,
)
from console.accounts.services.sessions import (
    SESSION_ORGANIZATION,
    begin_session,
    organizations_of,
    sign_in,
    sign_out,
    switch_organization,
)
from console.accounts.services.signup import SignedUp, sign_up
from console.accounts.services.verification import (
    request_verification,
    send_verification,
    verify_email,
)

__all__ = [
    "SESSION_ORGANIZATION",
    "CreatedKey",
    "SignedUp",
    "actor_of_user",
    "authenticate_key",
    "begin_session",
    "billing_addresses",
    "create_api_key",
    "organizations_of",
    "purge_address_events",
    "request_verification",
    "revoke_api_key",
    "send_verification",
    "set_produce_suspension",
    "set_standing",
    "sign_in",
    "sign_out",
    "sign_up",
    "switch_organization",
    "update_organization",
    "verify_email",
]
