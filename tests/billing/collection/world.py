"""A service that collects by the fake of Stripe, for tests: workers, webhooks and time by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Protocol

import httpx
from celery import current_app
from django.core import mail
from django.test import Client

from billing.collection import cards, events
from billing.collection.tasks import catch_up_events, collect_due, sweep_collection
from billing.models import CardAccount, Payment, PaymentAttempt, Receivable
from billing.receivables.services import record_payment
from billing.services import numbers
from billing.services.store import document_store
from console.base.common.models import OutboxEntry
from console.base.common.tenancy import organization_scope, system_scope
from console.programs.stripe_fake.keys import CONTROL_TOKEN
from console.programs.stripe_fake.server import FakeServer
from tests.billing.receivables import ledgers

WEBHOOK = "/api/v1/webhooks/stripe"
OURS = (
    "billing.collect_organization",
    "billing.send_attempt",
    "billing.send_refund",
    "billing.handle_stripe_event",
    "billing.send_dunning_mail",
)
GOOD, DECLINES_LATER = "4242424242424242", "4000000000000341"
ASKS_ALWAYS, DISPUTED = "4000002760003184", "4000000000000259"


class Clock(Protocol):
    """A clock that a test sets."""

    now: datetime


class World:
    """The fake, an organization's id, and a clock that both share."""

    def __init__(self, server: FakeServer, clock: Clock, organization_id: str) -> None:
        self.server, self.clock, self.id = server, clock, organization_id
        self.months = 0
        self.client = Client(raise_request_exception=True)
        self.set_clock()

    # The fake.

    def control(self, method: str, path: str, /, **body: object) -> dict[str, Any]:
        """Calls the fake's control API."""
        return self.server.control.answer(method, f"/_fake/{path}", f"Bearer {CONTROL_TOKEN}", body)

    def fault(self, kind: str, *, count: int | None = 3, path: str = "*", **more: object) -> None:
        """Has calls fail: three, as the client repeats a call twice by itself."""
        self.control("POST", "faults", kind=kind, count=count, path=path, **more)

    def webhook_fault(self, kind: str, **more: object) -> None:
        """Has every webhook from now on be dropped, sent twice, forged and so on."""
        self.control("POST", "faults", kind=kind, on="webhooks", count=None, **more)

    def heal(self) -> None:
        """Ends every fault."""
        self.control("DELETE", "faults")

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """Every object of a kind at the fake, oldest first."""
        objects: list[dict[str, Any]] = self.control("GET", f"objects/{kind}")["data"]
        return objects

    def charges_of(self, invoice_id: str) -> int:
        """How many charges of an invoice succeeded."""
        intents = {one["id"]: one for one in self.objects("payment_intent")}
        paid = [one for one in self.objects("charge") if one["paid"]]
        named = [intents[one["payment_intent"]]["metadata"]["invoices"].split(",") for one in paid]
        return sum(invoice_id in invoices for invoices in named)

    def set_clock(self) -> None:
        """Has the fake's clock show what the service's does."""
        self.control("POST", "clock", now=self.clock.now.timestamp(), rate=1)

    # Time and workers.

    def move(self, **passed: float) -> None:
        """Lets time pass: `move(days=1)`."""
        self.clock.now += timedelta(**passed)
        self.set_clock()

    def work(self) -> list[str]:
        """Runs what is enqueued, as workers would; returns the names of the tasks."""
        ran = []
        while (entry := _take_entry()) is not None:
            if entry.task in OURS:
                current_app.tasks[entry.task].apply(kwargs=entry.arguments, throw=True)
                ran.append(entry.task)
        return ran

    def deliver(self) -> list[int]:
        """Sends the webhooks that are due; returns the statuses of the answers."""
        statuses = []
        for delivery in self.control("POST", "deliveries/take")["data"]:
            headers = dict(delivery["headers"])
            answer = self.client.post(
                WEBHOOK,
                data=delivery["body"],
                content_type=headers.pop("Content-Type"),
                headers=headers,
            )
            statuses.append(answer.status_code)
            number = delivery["id"]
            self.control("POST", f"deliveries/{number}", status=answer.status_code)
        return statuses

    def beat(self) -> None:
        """Does what the scheduler starts, and what follows."""
        collect_due()
        self.work()
        sweep_collection()
        self.work()

    def settle(self, rounds: int = 8) -> None:
        """Lets an hour pass in which everything may come to its end, webhooks or none."""
        for _ in range(rounds):
            self.beat()
            self.deliver()
            self.work()
            catch_up_events()
            self.work()
            self.move(minutes=60 / rounds)

    def settle_until_paid(self, invoice_id: str) -> None:
        """Lets hours pass until an invoice is paid; a day at most, as errors are kept so long."""
        for _ in range(26):
            self.settle(rounds=1)
            if self.receivable(invoice_id).state == "paid":
                return
        message = f"{invoice_id} is not paid"
        raise AssertionError(message)

    def live_through(self, days: float, step_hours: float = 24) -> None:
        """Lets days pass, with the scheduler once in each step."""
        for _ in range(int(days * 24 / step_hours)):
            self.move(hours=step_hours)
            catch_up_events()
            self.beat()
            self.deliver()
            self.work()

    # The customer.

    def give_card(self, number: str = GOOD) -> None:
        """Gives a card on the hosted page, and has the service hear of it."""
        url = cards.begin_setup(organization_id=self.id)
        answer = httpx.post(url, data={"number": number, "expiry": "12/34", "cvc": "123"})
        assert answer.status_code in {302, 303}, answer.text
        if "/authenticate/" in answer.headers["location"]:
            self.authenticate(answer.headers["location"])
        cards.check_card(organization_id=self.id)
        self.work()

    def remove_card(self) -> None:
        """Removes the card on the hosted page, and has the service hear of it."""
        url = cards.open_portal(organization_id=self.id)
        with organization_scope(self.id):
            customer_id = CardAccount.objects.get().customer_id
        for method in self.objects("payment_method"):
            if method["customer"] == customer_id:
                httpx.post(f"{url}/remove", data={"payment_method": method["id"]})
        cards.check_card(organization_id=self.id)
        self.work()

    def authenticate(self, url: str, *, succeed: bool = True) -> None:
        """Answers the bank's question on its page."""
        answer = httpx.post(url, data={"outcome": "succeed" if succeed else "fail"})
        assert answer.status_code in {302, 303}, answer.text
        # Only the fake's own pages go on: the console does not run.
        if answer.headers["location"].startswith(self.server.base):
            httpx.get(answer.headers["location"])

    def issue(self, amount_minor: int) -> str:
        """Issues an invoice of an amount, of a month of its own; returns its id."""
        self.months += 1
        month = ledgers.month_number(self.months)
        invoice_id = ledgers.issue_amount(self.id, amount_minor, month)
        numbers.confirm_blocks(document_store())
        return invoice_id

    # What the service knows.

    def attempts(self) -> list[PaymentAttempt]:
        """The attempts, oldest first."""
        with system_scope():
            rows = PaymentAttempt.objects.filter(organization_id=self.id)
            return list(rows.order_by("created_at", "number"))

    def receivable(self, invoice_id: str) -> Receivable:
        """What is owed of an invoice."""
        with organization_scope(self.id):
            return Receivable.objects.get(pk=invoice_id)

    def subjects(self) -> list[str]:
        """The subjects of the mails so far."""
        return [str(message.subject) for message in mail.outbox]


def caught_up() -> None:
    """Reads the events as the scheduler does, so that charges may be made."""
    events.catch_up_events()


def _take_entry() -> OutboxEntry | None:
    with system_scope():
        entry = OutboxEntry.objects.order_by("created_at", "pk").first()
        if entry is not None:
            OutboxEntry.objects.filter(pk=entry.pk).delete()
        return entry


def transfer(world: World, amount_minor: int = 1250, name: str = "bank 1") -> Payment:
    """Enters a bank transfer of an organization, which came in now."""
    with organization_scope(world.id):
        return record_payment(
            organization_id=world.id,
            method="transfer",
            amount_minor=amount_minor,
            currency="USD",
            external_id=name,
            received_at=world.clock.now,
            by="tests",
        )
