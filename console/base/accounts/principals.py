"""The principals under which API keys and members pay for what they read and write of a cluster.

Brokers count usage by principal. A Kafka client's principal is `User:` and the user's name, and
clients choose names, so those that ask by REST have types of their own: `ApiKey:` and `Member:`,
each with an id. No client can authenticate as one of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from console.base.accounts.models import ApiKey, Membership
from console.base.audit.names import names_by_id
from console.base.common.actor import Actor, ActorKind

API_KEY, MEMBER, USER = "ApiKey:", "Member:", "User:"
# The principal of the service itself, which pays for nothing, and that under which a broker counts
# whoever comes after very many others (`brokers/core/crates/storage/src/payers.rs`).
FIXED_NAMES = {
    f"{USER}__freshet": "Freshet itself",
    "Others:*": "Others, counted together",
}
TYPES = {ActorKind.API_KEY: API_KEY, ActorKind.SESSION: MEMBER}


def payer_of(actor: Actor) -> str | None:
    """The principal that pays for what an actor asks of brokers; None for the service itself."""
    kind = TYPES.get(actor.kind)
    return None if kind is None else kind + actor.id


def names_of_principals(
    organization_id: str, principals: Iterable[str], *, of_people: bool
) -> dict[str, str]:
    """What principals of an organization's clusters are called, of those that are known.

    A credential and an API key have their name, revoked ones too; a member has its address while
    it is one. `of_people`: whether the reader may see who the organization's members and keys are.
    Reads in the caller's tenancy scope.
    """
    asked = frozenset(principals)
    users = {principal for principal in asked if principal.startswith(USER)}
    names = dict(names_by_id(ActorKind.KAFKA, users))
    names |= {principal: FIXED_NAMES[principal] for principal in asked & FIXED_NAMES.keys()}
    key_ids, user_ids = _ids(asked, API_KEY), _ids(asked, MEMBER)
    if of_people and key_ids:
        keys = ApiKey.objects.filter(organization_id=organization_id, pk__in=key_ids)
        names |= _principals(API_KEY, keys.values_list("pk", "name"))
    if of_people and user_ids:
        members = Membership.objects.filter(organization_id=organization_id, user__in=user_ids)
        names |= _principals(MEMBER, members.values_list("user", "user__email"))
    return names


def _ids(principals: Collection[str], kind: str) -> list[str]:
    return [name.removeprefix(kind) for name in principals if name.startswith(kind)]


def _principals(kind: str, names: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {kind + of: name for of, name in names}
