"""Closes an organization: its clusters are deleted, its keys revoked, and a last invoice follows.

Other applications delete clusters and the like when they receive
`console.base.accounts.signals.organization_closed`. Afterwards the organization's people sign in as
before and read, its invoices above all; `admission.py` refuses every change
but those by which it pays.
"""

from __future__ import annotations

from django.core.mail import EmailMessage

from console.base.accounts.errors import (
    OrganizationClosed,
    PersonRequired,
    SecondFactorCodeWrong,
)
from console.base.accounts.models import ApiKey, Organization, User
from console.base.accounts.services.factors import has_second_factor
from console.base.accounts.services.organizations import billing_addresses
from console.base.accounts.services.second_factors import require_code
from console.base.accounts.signals import organization_closed
from console.base.common.actor import Actor, ActorKind
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.errors import (
    FieldError,
    NameNotConfirmed,
)
from console.base.common.mail_names import quoted_name
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope

TASK = "accounts.send_closing_mail"
TEXT = """\
The organization {name} was closed on {day} (UTC).

- Its clusters were deleted. What they stored goes for good seven days later.
- Its API keys and Kafka credentials have no effect any more.
- A last invoice follows, as soon as all that was used is counted: on the next day as a rule.

You can go on signing in, to read invoices and the audit log and to download what is kept:

{link}

If this was a mistake, answer within seven days.
"""


def close_organization(*, actor: Actor, name: str, code: str | None) -> Organization:
    """Closes the actor's organization for good, within its tenancy scope.

    A person confirms it by the organization's name, and by a code if they have a second factor.
    Raises `PersonRequired` for an API key, `NameNotConfirmed`, `OrganizationClosed`,
    `TooManyRequests`, and `SecondFactorCodeWrong` after it has counted the attempt.
    """
    if actor.kind is not ActorKind.SESSION:
        raise PersonRequired
    # Creating a cluster locks this row too. So a cluster that is being created now is either there
    # before us, and is deleted, or waits for us, and is refused.
    organization = Organization.objects.select_for_update(no_key=True).get(pk=actor.organization_id)
    if organization.closed_at is not None:
        raise OrganizationClosed
    if name != organization.name:
        detail = "Give the organization's name as `name` to confirm."
        raise NameNotConfirmed(detail, errors=[FieldError("/name", "name_not_confirmed", detail)])
    _require_second_factor(actor, code)
    organization.closed_at = now()
    organization.generation += 1
    organization.save(update_fields=["closed_at", "generation"])
    organization_closed.send(sender=Organization, actor=actor)
    keys = ApiKey.objects.for_organization(organization.pk).not_revoked()
    revoked = keys.update(revoked_at=organization.closed_at)
    record_audit(
        actor=actor,
        action="organization.close",
        target_type="organization",
        target_id=organization.pk,
        detail={"name": organization.name, "api_keys_revoked": revoked},
    )
    enqueue_task(
        task=TASK,
        organization_id=organization.pk,
        arguments={"organization_id": organization.pk},
    )
    return organization


def send_closing_mail(*, organization_id: str) -> None:
    """Mails the members with the billing permission that the organization was closed."""
    with organization_scope(organization_id):
        organization = Organization.objects.for_organization(organization_id).first()
    if organization is None or organization.closed_at is None:
        return
    name = quoted_name(organization.name)
    body = TEXT.format(
        name=name,
        day=f"{organization.closed_at:%Y-%m-%d}",
        link=f"{config().web.public_url}/invoices",
    )
    for address in billing_addresses(organization_id=organization_id):
        EmailMessage(f"{name} was closed", body, to=[address]).send()


def _require_second_factor(actor: Actor, code: str | None) -> None:
    """Raises `SecondFactorCodeWrong` or `TooManyRequests` if the actor's user has a second factor
    and `code` is not one of its codes.
    """
    user = User.objects.get(pk=actor.id)
    if not has_second_factor(user):
        return
    if not code:
        detail = "A code of the authenticator app is required."
        raise SecondFactorCodeWrong(detail, errors=[FieldError("/code", "code_required", detail)])
    require_code(user=user, code=code)
