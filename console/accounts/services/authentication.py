"""Whose a credential is."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from console.accounts import keys
from console.accounts.models import ApiKey, Membership, User
from console.accounts.services.admission import access_of
from console.common.actor import Actor, ActorKind, Role
from console.common.clock import now
from console.common.errors import NotAuthenticated
from console.common.tenancy import system_scope

LAST_USED_STEP = timedelta(minutes=5)


def authenticate_key(*, text: str, address: str) -> Actor:
    """The actor of an API key's secret. Raises `NotAuthenticated`, and never says why."""
    message = "The API key is unknown, expired or revoked."
    key_id = keys.key_id_of(text)
    if key_id is None:
        raise NotAuthenticated(message)
    with system_scope():
        key = ApiKey.objects.usable().select_related("organization").filter(pk=key_id).first()
        if key is None or not keys.matches(text, key.verifier):
            raise NotAuthenticated(message)
        _note_use(key)
    return Actor(
        kind=ActorKind.API_KEY,
        id=key.pk,
        organization_id=key.organization_id,
        role=Role(key.role),
        address=address,
        access=access_of(key.organization),
    )


def _note_use(key: ApiKey) -> None:
    """Has `last_used_at` written after the request, at most once in some minutes.

    Within the request's transaction it would lock the key's row: requests with one key would wait
    for each other, and revoking it for the longest of them.
    """
    if key.last_used_at is None or now() - key.last_used_at >= LAST_USED_STEP:
        # The request's change stands, whatever happens to this one.
        transaction.on_commit(lambda: _write_last_use(key.pk), robust=True)


def _write_last_use(key_id: str) -> None:
    at = now()
    stale = Q(last_used_at=None) | Q(last_used_at__lte=at - LAST_USED_STEP)
    with system_scope():
        ApiKey.objects.filter(stale, pk=key_id).update(last_used_at=at)


def actor_of_user(*, user: User, organization_id: str | None, address: str) -> Actor | None:
    """A user's actor in the named organisation, or in the one that they joined first."""
    with system_scope():
        memberships = Membership.objects.filter(user=user).order_by("created_at", "id")
        if organization_id is not None:
            memberships = memberships.filter(organization_id=organization_id)
        membership = memberships.select_related("organization").first()
    if membership is None:
        return None
    return Actor(
        kind=ActorKind.SESSION,
        id=user.pk,
        organization_id=membership.organization_id,
        role=Role(membership.role),
        address=address,
        access=access_of(membership.organization),
    )
