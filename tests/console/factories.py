"""Rows that tests begin with, made in the tenancy scope that they belong to."""

from __future__ import annotations

from dataclasses import dataclass

from console.accounts import services
from console.accounts.models import Membership, Organization, User
from console.common.actor import Role, system_actor
from console.common.clock import now
from console.common.tenancy import organization_scope

PASSWORD = "correct horse battery"


@dataclass(frozen=True)
class Tenant:
    """An organisation, its owner, and the secret of a key of each role."""

    organization: Organization
    owner: User
    keys: dict[Role, str]

    @property
    def id(self) -> str:
        """The organisation's id."""
        return self.organization.pk

    @property
    def key(self) -> str:
        """The secret of an owner's key."""
        return self.keys[Role.OWNER]


def make_user(email: str) -> User:
    """Somebody who proved to own the address."""
    user = User(email=email, email_verified_at=now())
    user.set_password(PASSWORD)
    user.save()
    return user


def make_tenant(name: str) -> Tenant:
    """An organisation that is verified, with an owner and a key of each role."""
    organization = Organization(name=name, verified_at=now())
    owner = make_user(f"owner@{name.lower()}.example")
    with organization_scope(organization.pk):
        organization.save(force_insert=True)
        Membership.objects.create(organization=organization, user=owner, role=Role.OWNER)
        actor = system_actor(organization.pk)
        keys = {
            role: services.create_api_key(actor=actor, name=role, role=role).secret for role in Role
        }
    return Tenant(organization=organization, owner=owner, keys=keys)
