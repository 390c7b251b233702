"""Names in mails: no link, no line of their own, no more than a name."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.budgets.notices import mail_text
from billing.choices import BudgetEventKind
from billing.models import Budget, BudgetEvent
from console.base.accounts import services
from console.base.accounts.models import Organization
from console.base.common.actor import Role, system_actor
from console.base.common.clock import now
from console.base.common.mail_names import NAME_CHARS_MAX, quoted_name, unlinked
from console.base.common.tenancy import organization_scope
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.outbox import run_outbox

ROOT = Path(__file__).parents[2]
PACKAGES = ("billing", "console", "metering", "provisioning")
# What a mail program makes a link of: a scheme, or a host that ends in a top-level domain.
LINK = re.compile(r"\w:[/\\]|[^\W_][.。．｡](?:[^\W\d_]{2,}(?![^\W_])|xn--)", re.IGNORECASE)
HOSTILE = {
    "address": "Pay at https://evil.example/pay",
    "host": "evil.example",
    "host behind words": "Your bill: www.evil.example/pay?now=1",
    "mail address": "help@evil.example",
    "ideographic dot": "evil。example",
    "international": "evil.xn--p1ai",
    "cyrillic": "фрешет.рф",
    "html": '<a href="//evil.example">Freshet</a>',
    "ends the quote": 'Acme" on Freshet. Freshet asks you to pay at once',
    "long": "Acme " * 20,
    "lines": "Acme\r\n\r\nOpen this link instead\n",
    "turned": "Acme\u202emoc.live",
}
OF_MAILS = re.compile(r"\b(EmailMessage|send_mail)\(")
# Each file that writes a mail, with whether it holds a text of a tenant.
SENDERS = {
    "billing/allowances/notices.py": False,
    "billing/budgets/notices.py": True,
    "billing/budgets/promises.py": True,
    "billing/collection/notices.py": False,
    "billing/mails.py": False,
    "billing/services/mailing.py": True,
    "console/alerts/services/mails.py": True,
    "console/base/accounts/services/address_mails.py": False,
    "console/base/accounts/services/closing.py": True,
    "console/base/accounts/services/invitations.py": True,
    "console/base/accounts/services/people.py": False,
    "console/base/accounts/services/verification.py": False,
    "console/incidents/services/mails.py": True,
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_name_is_one_line_without_a_link(name):
    shown = quoted_name(name)
    assert not LINK.search(shown)
    assert shown.isprintable()
    assert len(shown) <= 2 * NAME_CHARS_MAX
    assert shown.count('"') == 2
    assert (shown[0], shown[-1]) == ('"', '"')


@given(st.text(alphabet='aé0 .:/@\\"\n\u202e。xn-', max_size=100))
def test_no_text_is_a_link(text):
    assert not LINK.search(unlinked(text))
    shown = quoted_name(text)
    assert not LINK.search(shown)
    assert shown.count('"') == 2


@pytest.mark.parametrize("name", ["Acme Inc.", "Dr. Müller & Co. KG", "R2.D2", "v1.2", "日本電気"])
def test_an_ordinary_name_is_as_it_was(name):
    assert quoted_name(name) == f'"{name}"'


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_no_mail_has_more_of_an_organization_than_its_name(tenant, mailoutbox, name):
    with organization_scope(tenant.id):
        Organization.objects.update(name=name[:100], closed_at=now())
        services.create_invitation(
            actor=system_actor(tenant.id), email="ada@other.example", role=Role.VIEWER
        )
    run_outbox()
    services.send_closing_mail(organization_id=tenant.id)
    invitation, closing = mailoutbox
    own = tenant.owner.email
    for message in (invitation, closing):
        for line in [message.subject, *message.body.split("\n")]:
            if not line.startswith("http"):
                assert not LINK.search(line.replace(own, "")), line
        assert quoted_name(name[:100]) in message.body


@pytest.mark.parametrize("kind", BudgetEventKind.values)
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_no_mail_of_a_budget_has_a_link_of_its_name(name, kind):
    budget = Budget(name=name, currency="USD", amount_minor=100, throttle_bytes_per_s=1)
    event = BudgetEvent(
        budget=budget,
        kind=kind,
        amount_minor=100,
        spent_minor=100,
        month=now().date(),
        threshold=50,
        action="notify",
    )
    subject, text = mail_text(event)
    for line in [subject, *text.split("\n")]:
        if not line.startswith("http"):
            assert not LINK.search(line), line
    assert quoted_name(name) in subject
    assert quoted_name(name) in text


def test_every_file_that_writes_mails_is_known_and_shows_texts_of_tenants_by_one_function():
    senders = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            if OF_MAILS.search(text):
                senders[str(path.relative_to(ROOT))] = shows_by_the_function(text)
    assert senders == SENDERS


def shows_by_the_function(text):
    """Returns whether a file calls `quoted_name` or `unlinked`."""
    called = {
        node.func.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return bool(called & {"quoted_name", "unlinked"})


@pytest.mark.parametrize("name", ["https://evil.example", "Acme x://y"])
def test_no_organization_is_named_by_an_address(tenant, name):
    client = ApiClient(tenant.key)
    document = assert_problem(
        client.patch("/organizations/current", {"name": name}), 422, "validation_failed"
    )
    assert [error["pointer"] for error in document["errors"]] == ["/name"]
