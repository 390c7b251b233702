"""Finds the actor whose credential a request shows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from console.base.accounts import keys
from console.base.accounts.models import ApiKey, Membership, RoleBinding, User
from console.base.accounts.services.admission import access_of
from console.base.common.actor import GRANTS, Actor, ActorKind, Permission, Role
from console.base.common.clock import now
from console.base.common.errors import NotAuthenticated
from console.base.common.tenancy import system_scope

LAST_USED_STEP = timedelta(minutes=5)


def authenticate_key(*, text: str, address: str) -> Actor:
    """Returns the actor of an API key's secret, and enters its organization's tenancy scope.

    Raises `NotAuthenticated` with the same message for every reason, so that nobody learns which
    keys exist.
    """
    message = "The API key is unknown, expired or revoked."
    key_id = keys.key_id_of(text)
    if key_id is None:
        raise NotAuthenticated(message)
    with system_scope() as scope:
        usable = ApiKey.objects.usable().select_related("organization", "service_account")
        key = usable.filter(pk=key_id).first()
        if key is None or not keys.matches_verifier(text, key.verifier):
            raise NotAuthenticated(message)
        actor = actor_of_key(key, address=address)
        _note_use(key)
        scope.leave_for(actor.organization_id)
    return actor


def actor_of_key(key: ApiKey, *, address: str) -> Actor:
    """Returns the actor of a key, with the rights of its service account where it has one."""
    account = key.service_account
    return Actor(
        kind=ActorKind.API_KEY,
        id=key.pk,
        organization_id=key.organization_id,
        role=Role(key.effective_role),
        address=address,
        access=access_of(key.organization),
        projects={} if account is None else granted_projects(account.role_bindings.all()),
        user_id=key.created_by_id,
        service_account_id=key.service_account_id or key.created_by_account_id,
    )


def granted_projects(bindings: Iterable[RoleBinding]) -> dict[str, frozenset[Permission]]:
    """Returns the permissions that role bindings grant, by project id."""
    granted: dict[str, frozenset[Permission]] = {}
    for binding in bindings:
        earlier = granted.get(binding.project_id, frozenset())
        granted[binding.project_id] = earlier | GRANTS[Role(binding.role)]
    return granted


def _note_use(key: ApiKey) -> None:
    """Writes `last_used_at` after the request has committed, at most once in `LAST_USED_STEP`.

    Written within the request's transaction it would lock the key's row: requests with one key
    would wait for one another, and revoking the key for the longest of them.
    """
    if key.last_used_at is None or now() - key.last_used_at >= LAST_USED_STEP:
        # `robust`: the request has committed, so a failure here must not fail its answer.
        transaction.on_commit(lambda: _write_last_use(key.pk), robust=True)


def _write_last_use(key_id: str) -> None:
    at = now()
    stale = Q(last_used_at=None) | Q(last_used_at__lte=at - LAST_USED_STEP)
    with system_scope():
        ApiKey.objects.filter(stale, pk=key_id).update(last_used_at=at)


def actor_of_user(*, user: User, organization_id: str | None, address: str) -> Actor | None:
    """Returns a user's actor in the named organization, or for None in the one they joined first.

    Returns None if the user is no member of the named organization, or of any.
    """
    with system_scope():
        memberships = Membership.objects.filter(user=user).order_by("created_at", "id")
        if organization_id is not None:
            memberships = memberships.filter(organization_id=organization_id)
        membership = memberships.select_related("organization").first()
        if membership is None:
            return None
        projects = granted_projects(membership.role_bindings.all())
        _note_seen(membership)
    return Actor(
        kind=ActorKind.SESSION,
        id=user.pk,
        organization_id=membership.organization_id,
        role=Role(membership.role),
        address=address,
        access=access_of(membership.organization),
        projects=projects,
        user_id=user.pk,
    )


def _note_seen(membership: Membership) -> None:
    """Writes `last_seen_at` after the request has committed, for the reasons in `_note_use`."""
    if membership.last_seen_at is None or now() - membership.last_seen_at >= LAST_USED_STEP:
        transaction.on_commit(lambda: _write_last_seen(membership.pk), robust=True)


def _write_last_seen(membership_id: str) -> None:
    at = now()
    stale = Q(last_seen_at=None) | Q(last_seen_at__lte=at - LAST_USED_STEP)
    with system_scope():
        Membership.objects.filter(stale, pk=membership_id).update(last_seen_at=at)
