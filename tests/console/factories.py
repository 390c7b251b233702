"""Functions that make rows for tests, in the tenancy scope that the rows belong to."""

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
# The body with which a signed-in person gives the password again.
AGAIN = {"password": PASSWORD}


@dataclass(frozen=True)
class Tenant:
    """An organization, its owner, and the secret of a key of each role."""

    organization: Organization
    owner: User
    # The organization's default project.
    project: Project
    keys: dict[Role, str]

    @property
    def id(self) -> str:
        """The organization's id."""
        return self.organization.pk

    @property
    def key(self) -> str:
        """The secret of an owner's key."""
        return self.keys[Role.OWNER]


def with_second_factor(user: User) -> None:
    """Marks all sessions of a user as begun with a second factor."""
    UserSession.objects.filter(user=user).update(second_factor=True)


def make_user(email: str) -> User:
    """Makes a user with a verified address and the password `PASSWORD`."""
    user = User(email=email, email_verified_at=now())
    user.set_password(PASSWORD)
    user.save()
    return user


def make_tenant(name: str) -> Tenant:
    """Makes a verified organization, with an owner and an API key of each role."""
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
    """Makes a key of each role; returns the secrets. One statement, as most tests need them."""
    keys = {role: ApiKey(organization=organization, name=role, role=role) for role in Role}
    new_secrets = {role: secrets.new_secret(key.pk) for role, key in keys.items()}
    for role, key in keys.items():
        key.verifier = new_secrets[role].verifier
    ApiKey.objects.bulk_create(keys.values())
    return {role: secret.text for role, secret in new_secrets.items()}


def make_member(tenant: Tenant, email: str, role: Role) -> Membership:
    """Makes a user who is a member of an organization."""
    user = make_user(email)
    with organization_scope(tenant.id):
        return Membership.objects.create(organization=tenant.organization, user=user, role=role)


def make_project(tenant: Tenant, name: str = "Other") -> Project:
    """Makes another project of an organization."""
    with organization_scope(tenant.id):
        return services.create_project(actor=system_actor(tenant.id), name=name)


def make_project_member(tenant: Tenant, project: Project, role: Role) -> Membership:
    """Makes a member of the organization who has a role in a project and no other."""
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
    """Makes a service account with a role in a project; returns the secret of a key of it."""
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
