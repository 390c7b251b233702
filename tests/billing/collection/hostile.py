"""Customers of a service that charges cards, who do whatever they like; and months that pass."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import stripe
from celery import current_app
from django.conf import settings as django_settings
from django.db import transaction
from django.utils import timezone

from billing.allowances.enforcement import enforce_allowances
from billing.collection import gateway as gateway_module
from billing.collection.advances import judge_payers
from billing.collection.tasks import catch_up_events
from billing.models import CardAccount
from billing.periods import next_month, starts_at
from billing.services import numbers
from billing.services.issuing import issue_month
from billing.services.store import document_store
from console.base.accounts.choices import AccountStatus
from console.base.accounts.models import Organization, TrafficLimit, User
from console.base.accounts.services import reopen_organization
from console.base.common import rates
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from console.programs.stripe_fake.keys import SECRET_KEY, WEBHOOK_SECRET
from console.programs.stripe_fake.server import FakeServer
from tests.billing import world as months
from tests.billing.collection.world import World, caught_up
from tests.billing.receivables import ledgers
from tests.console.browsers import signed_in
from tests.console.clients import ApiClient
from tests.console.factories import Tenant, make_tenant
from tests.metering.console.world import Used, publish_day, use_minute

BEGIN = datetime(2026, 9, 2, 1, tzinfo=UTC)
VAT_RATES = ("DE=19",)
INGRESS = "ingress_bytes"
# What a card serves before it has paid, in minor units: less than a month of the larger amounts.
LIMIT = 1_000
ISSUED_AFTER = timedelta(days=3, hours=1)


class Clock:
    """The service's clock."""

    now = BEGIN


@dataclasses.dataclass
class Customer:
    """An organization, who acts for it, and what the customer themselves know."""

    tenant: Tenant
    world: World
    client: ApiClient
    cluster_id: str
    # The bank's pages that wait for an answer.
    pages: list[str] = dataclasses.field(default_factory=list)

    @property
    def id(self) -> str:
        """The organization's id."""
        return self.tenant.id

    def request(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401
        """Asks the API, of a closed organization as its owner, who signs in."""
        answer = self.client.request(method, path, body)
        if answer.status_code == 401:
            answer = signed_in(self.tenant.owner).request(method, path, body)
        return answer


class Service:
    """A service with the fake, within one transaction of the test's database, and its customers.

    `close` undoes everything.
    """

    def __init__(self) -> None:
        self._undo = contextlib.ExitStack()
        self._begin_transaction()
        self.clock = Clock()
        self._replace(timezone, "now", lambda: self.clock.now)
        self._replace(stripe.HTTPClient, "INITIAL_DELAY", 0)
        self._replace(stripe.HTTPClient, "MAX_DELAY", 0)
        documents = Path(tempfile.mkdtemp(prefix="freshet-hostile-"))
        self._undo.callback(shutil.rmtree, documents)
        self.server = FakeServer()
        self.server.start()
        self._undo.callback(self.server.stop)
        billing = dataclasses.replace(
            config().billing,
            documents=str(documents),
            collector="stripe",
            seller_country="DE",
            seller_vat_id="DE111111111",
            vat_rates=VAT_RATES,
            stripe_api_key=SECRET_KEY,
            stripe_webhook_secret=WEBHOOK_SECRET,
            stripe_api_base=self.server.base,
            unproved_payer_limit_minor=LIMIT,
        )
        self._replace(django_settings, "FRESHET", dataclasses.replace(config(), billing=billing))
        gateway_module._answers.cache_clear()
        rates.forget_rates()
        current_app.loader.import_default_modules()
        self.customers: list[Customer] = []
        # Month → organization → what it used, by day; and the mailbox of each organization.
        self.used: dict[date, list[tuple[date, Used]]] = {}
        self.mailboxes: dict[str, str] = {}
        self.month = self.clock.now.date().replace(day=1)
        self.issued: list[date] = []
        self.open_customer("ada")
        caught_up()

    def close(self) -> None:
        """Undoes everything, the rows in the database too."""
        self._undo.close()

    def _begin_transaction(self) -> None:
        block = transaction.atomic()
        # Like the block around a test: a task's transaction may begin within it.
        vars(block)["_from_testcase"] = True
        block.__enter__()

        def end() -> None:
            transaction.set_rollback(True)
            block.__exit__(None, None, None)

        self._undo.callback(end)

    def _replace(self, owner: Any, name: str, value: object) -> None:  # noqa: ANN401 - any object
        self._undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)

    # Customers.

    def open_customer(self, mailbox: str) -> Customer:
        """A new organization, whose owner has proved an address of a mailbox."""
        number = len(self.customers)
        tenant = make_tenant(f"Hostile{number}")
        address = f"{mailbox}+{number}@example.com"
        User.objects.filter(pk=tenant.owner.pk).update(email=address)
        tenant.owner.refresh_from_db()
        with organization_scope(tenant.id):
            Organization.objects.filter(pk=tenant.id).update(created_at=self.clock.now)
        cluster_id = months.make_cluster(tenant.id, f"cl_{tenant.id[4:]}", f"orders-{number}")
        world = World(self.server, self.clock, tenant.id)
        customer = Customer(tenant, world, ApiClient(tenant.key), cluster_id)
        self.customers.append(customer)
        self.mailboxes[tenant.id] = mailbox
        return customer

    def remove_cards(self, customer: Customer) -> None:
        """Removes every card on Stripe's page; the service hears of it by a webhook, or later."""
        answer = customer.request("POST", "/payment-method/portal", {})
        if answer.status_code != 200:
            return
        url = answer.json()["url"]
        with organization_scope(customer.id):
            account = CardAccount.objects.get()
        for method in customer.world.objects("payment_method"):
            if method["customer"] == account.customer_id:
                httpx.post(f"{url}/remove", data={"payment_method": method["id"]})

    def close_customer(self, customer: Customer) -> None:
        """Closes an organization as its owner does, which may be refused."""
        owner = signed_in(customer.tenant.owner)
        owner.post("/organizations/current:close", {"name": customer.tenant.organization.name})

    def reopen_customer(self, customer: Customer) -> None:
        """Has the operator open a closed organization again, because its owner asks for it."""
        reopen_organization(organization_id=customer.id, reason="The owner asks for it.")

    def is_refused(self, customer: Customer) -> bool:
        """Whether the organization's clusters serve no traffic."""
        with organization_scope(customer.id):
            organization = Organization.objects.get(pk=customer.id)
            if organization.closed_at or organization.account_status != AccountStatus.ACTIVE:
                return True
            return TrafficLimit.objects.filter(kind="refuse").exists()

    def use(self, customer: Customer, quantity: int) -> None:
        """Has an organization use so many bytes of ingress, unless its traffic is refused."""
        if self.is_refused(customer):
            return
        used = Used(customer.id, customer.cluster_id, INGRESS, quantity)
        use_minute(used, self.clock.now.replace(second=0, microsecond=0))
        today = self.clock.now.date()
        self.used.setdefault(today.replace(day=1), []).append((today, used))
        enforce_allowances()
        judge_payers()

    # Time.

    def beat(self) -> None:
        """Does what the scheduler and the workers do in a minute."""
        # The task begins again a minute later.
        with contextlib.suppress(gateway_module.GatewayError):
            catch_up_events()
        with contextlib.suppress(gateway_module.GatewayError):
            self.customers[0].world.beat()
        self.customers[0].world.deliver()
        self.customers[0].world.work()
        enforce_allowances()
        judge_payers()

    def move(self, **passed: float) -> None:
        """Lets time pass in which nothing runs."""
        self.customers[0].world.move(**passed)

    def live(self, hours: float, step_hours: float = 24) -> None:
        """Lets time pass, with the scheduler once in each step; months end and are issued."""
        end = self.clock.now + timedelta(hours=hours)
        while self.clock.now < end:
            step = min(timedelta(hours=step_hours), end - self.clock.now)
            self.move(seconds=step.total_seconds())
            while self.clock.now >= starts_at(next_month(self.month)) + ISSUED_AFTER:
                self._issue(self.month)
                self.month = next_month(self.month)
            self.beat()

    def end_month(self) -> None:
        """Lets time pass until the month is over and its invoices are issued."""
        left = starts_at(next_month(self.month)) + ISSUED_AFTER - self.clock.now
        self.live(left.total_seconds() / 3600 + 1, step_hours=72)

    def _issue(self, month: date) -> None:
        by_day: dict[date, list[Used]] = {}
        for day, used in self.used.get(month, []):
            by_day.setdefault(day, []).append(used)
        for day, rows in sorted(by_day.items()):
            sums: dict[str, Used] = {}
            for row in rows:
                known = sums.get(row.organization_id)
                quantity = row.quantity + (known.quantity if known else 0)
                sums[row.organization_id] = dataclasses.replace(row, quantity=quantity)
            publish_day(day, sums.values())
        issue_month(month=month, by="tests", close_early="a machine")
        numbers.confirm_blocks(document_store())
        self.issued.append(month)

    def heal(self) -> None:
        """Ends every fault of the fake, and sends what it kept back."""
        self.customers[0].world.heal()
        self.customers[0].world.control("POST", "deliveries/release")

    def receivables(self) -> Iterator[tuple[Customer, Any]]:
        """What is owed, with whose it is."""
        for customer in self.customers:
            for invoice_id in ledgers.states(customer.id):
                yield customer, customer.world.receivable(invoice_id)

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """Every object of a kind at the fake."""
        return self.customers[0].world.objects(kind)
