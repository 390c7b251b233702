"""Rows that tests begin with, made in the tenancy scope that they belong to."""

from __future__ import annotations

from dataclasses import dataclass

from console.base.accounts import keys as secrets
from console.base.accounts import services
from console.base.accounts.choices import PrincipalType
from console.base.accounts.models import (
    ApiKey,
    Membership,
    Organization,
    Project,
    User,
    UserSession,
)
from console.base.common.actor import Role, system_actor
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope

PASSWORD = "correct horse battery"
# Of somebody who is asked for it though they are signed in.
AGAIN = {"password": PASSWORD}


@dataclass(frozen=True)
class Tenant:
    """An organisation, its owner, and the secret of a key of each role."""

    organization: Organization
    owner: User
    # The default one.
    project: Project
    keys: dict[Role, str]

    @property
    def id(self) -> str:
        """The organisation's id."""
        return self.organization.pk

    @property
    def key(self) -> str:
        """The secret of an owner's key."""
        return self.keys[Role.OWNER]


def with_second_factor(user: User) -> None:
    """Has the user's sessions be begun with a second factor."""
    UserSession.objects.filter(user=user).update(second_factor=True)


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
        project = services.create_default_project(actor=actor)
        keys = _make_keys(organization)
    return Tenant(organization=organization, owner=owner, project=project, keys=keys)


def _make_keys(organization: Organization) -> dict[Role, str]:
    """A key of each role, in one statement: most tests begin with these."""
    made = {role: ApiKey(organization=organization, name=role, role=role) for role in Role}
    found = {role: secrets.new_secret(key.pk) for role, key in made.items()}
    for role, key in made.items():
        key.verifier = found[role].verifier
    ApiKey.objects.bulk_create(made.values())
    return {role: secret.text for role, secret in found.items()}


def make_member(tenant: Tenant, email: str, role: Role) -> Membership:
    """Somebody of an organisation."""
    with organization_scope(tenant.id):
        return Membership.objects.create(
            organization=tenant.organization, user=make_user(email), role=role
        )


def make_project(tenant: Tenant, name: str = "Other") -> Project:
    """Another project of an organisation."""
    with organization_scope(tenant.id):
        return services.create_project(actor=system_actor(tenant.id), name=name)


def make_project_member(tenant: Tenant, project: Project, role: Role) -> Membership:
    """A member of the organisation who has a role in a project and none besides."""
    email = f"{role}@{project.name.lower()}.example"
    membership = make_member(tenant, email, Role.MEMBER)
    with organization_scope(tenant.id):
        services.create_role_binding(
            actor=system_actor(tenant.id),
            principal_type=PrincipalType.USER,
            principal_id=membership.user_id,
            project_id=project.pk,
            role=role,
        )
    return membership


def make_project_key(
    tenant: Tenant, project: Project, role: Role, *, organization_role: Role = Role.MEMBER
) -> str:
    """The secret of a service account's key that has a role in a project."""
    actor = system_actor(tenant.id)
    with organization_scope(tenant.id):
        account = services.create_service_account(
            actor=actor, name=f"{role} in {project.name}", role=organization_role
        )
        services.create_role_binding(
            actor=actor,
            principal_type=PrincipalType.SERVICE_ACCOUNT,
            principal_id=account.pk,
            project_id=project.pk,
            role=role,
        )
        return services.create_api_key(
            actor=actor, name="of a project", service_account_id=account.pk
        ).secret
