"""The endpoints of payments: the card, paying now, and what is owed."""

from dataclasses import replace

import httpx
import pytest

from billing.collection.tasks import sweep_collection
from billing.models import CardAccount, PayerOrganization
from console.base.accounts.models import Organization
from console.base.common.actor import Role
from console.base.common.conf import config
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.billing.collection.world import ASKS_ALWAYS, DECLINES_LATER, GOOD
from tests.console.cases import assert_problem

CARD = {"number": GOOD, "expiry": "12/34", "cvc": "123"}


def body(response, status=200):
    assert response.status_code == status, response.content
    return response.json()


def pay(client, invoice_id, **more):
    return client.request("POST", f"/invoices/{invoice_id}/pay", more)


@pytest.fixture
def client(world, api):
    return api()


def test_a_card_is_given_on_stripes_page_and_known_afterwards(world, client):
    nothing = {
        "collector": "stripe",
        "card": None,
        "can_manage": False,
        "refusal": "",
        "advance_minor": None,
        "currency": "USD",
    }
    assert body(client.request("GET", "/payment-method")) == nothing
    url = body(client.request("POST", "/payment-method/setup"))["url"]
    assert url.startswith(world.server.base)
    answer = httpx.post(url, data=CARD)
    assert answer.headers["location"].endswith("/billing?card=given")
    world.deliver()
    world.work()
    known = body(client.request("GET", "/payment-method"))
    assert known == {
        "collector": "stripe",
        "card": {"brand": "visa", "last4": "4242", "expires_month": 12, "expires_year": 2034},
        "can_manage": True,
        "refusal": "",
        "advance_minor": None,
        "currency": "USD",
    }
    with organization_scope(world.id):
        assert PayerOrganization.objects.filter(until=None).count() == 1
        assert AuditEntry.objects.filter(action="payment_method.change").count() == 1


def test_a_card_is_known_without_a_webhook_too(world, client):
    url = body(client.request("POST", "/payment-method/setup"))["url"]
    httpx.post(url, data=CARD)
    world.move(minutes=2)
    sweep_collection()
    assert body(client.request("GET", "/payment-method"))["card"]["last4"] == "4242"


def test_who_has_proved_no_address_gives_no_card(world, client, settings):
    with organization_scope(world.id):
        Organization.objects.update(verified_at=None)
    settings.FRESHET = replace(config(), mode="production")
    refused = client.request("POST", "/payment-method/setup")
    assert_problem(refused, 403, "not_verified")
    with organization_scope(world.id):
        assert not CardAccount.objects.exists()


def test_a_page_that_nobody_fills_in_is_forgotten(world, client):
    body(client.request("POST", "/payment-method/setup"))
    for _ in range(40):
        world.move(hours=1)
        sweep_collection()
    with organization_scope(world.id):
        account = CardAccount.objects.get()
    assert (account.setup_id, account.check_at) == ("", None)


def test_the_late_event_of_an_earlier_page_does_not_bring_its_card_back(world, client):
    world.webhook_fault("hold")
    world.give_card(DECLINES_LATER)
    world.move(minutes=1)
    world.give_card(GOOD)
    world.control("POST", "deliveries/release")
    world.deliver()
    world.work()
    assert body(client.request("GET", "/payment-method"))["card"]["last4"] == GOOD[-4:]


def test_a_card_that_is_removed_in_the_portal_is_gone(world, client):
    assert_problem(client.request("POST", "/payment-method/portal"), 409, "no_payment_method")
    world.give_card()
    url = body(client.request("POST", "/payment-method/portal"))["url"]
    with organization_scope(world.id):
        method = CardAccount.objects.get().method_id
    httpx.post(f"{url}/remove", data={"payment_method": method})
    world.deliver()
    world.work()
    assert body(client.request("GET", "/payment-method"))["card"] is None
    with organization_scope(world.id):
        assert not PayerOrganization.objects.filter(until=None).exists()


def test_paying_now_charges_the_invoice(world, client):
    world.give_card(DECLINES_LATER)
    invoice_id = world.issue(1250)
    world.beat()
    assert body(client.request("GET", "/account"))["stage"] == "unpaid"
    with organization_scope(world.id):
        method = CardAccount.objects.get().method_id
    world.control("POST", f"payment_methods/{method}", declines=None)
    answer = body(pay(client, invoice_id))
    assert answer["state"] == "succeeded"
    assert (answer["url"], answer["invoice_ids"]) == (None, [invoice_id])
    assert body(client.request("GET", "/account"))["stage"] == "paid"
    (payment,) = body(client.request("GET", "/payments"))["items"]
    assert (payment["method"], payment["amount_minor"]) == ("card", 1250)
    assert [one["id"] for one in payment["invoices"]] == [invoice_id]
    assert_problem(pay(client, invoice_id), 409, "nothing_open")
    assert world.charges_of(invoice_id) == 1


def test_a_bank_that_asks_leads_to_a_page_and_back(world, client):
    world.give_card(ASKS_ALWAYS)
    invoice_id = world.issue(1250)
    answer = body(pay(client, invoice_id))
    assert answer["state"] == "requires_action"
    # Asked again it is the same payment.
    assert body(pay(client, invoice_id))["url"] == answer["url"]
    world.authenticate(answer["url"])
    world.deliver()
    world.work()
    assert world.receivable(invoice_id).state == "paid"
    assert world.charges_of(invoice_id) == 1


def test_a_customer_who_refuses_may_try_again(world, client):
    world.give_card(ASKS_ALWAYS)
    invoice_id = world.issue(1250)
    first = body(pay(client, invoice_id))
    world.authenticate(first["url"], succeed=False)
    second = body(pay(client, invoice_id))
    assert (second["state"], second["url"] != first["url"]) == ("requires_action", True)
    world.authenticate(second["url"])
    world.settle()
    assert world.charges_of(invoice_id) == 1


def test_a_customer_who_leaves_holds_nothing_up(world, client):
    world.give_card(ASKS_ALWAYS)
    invoice_id = world.issue(1250)
    body(pay(client, invoice_id))
    world.move(hours=2)
    world.beat()
    assert all(not attempt.is_live for attempt in world.attempts())
    world.give_card(GOOD)
    assert world.charges_of(invoice_id) == 1


def test_a_decline_is_an_answer_with_the_banks_words(world, client):
    world.give_card(DECLINES_LATER)
    invoice_id = world.issue(1250)
    answer = body(pay(client, invoice_id))
    assert (answer["state"], answer["failure"]) == ("failed", "declined")
    assert answer["message"] == "Your card was declined."


def test_one_click_pays_all_that_is_unpaid(world, client):
    world.give_card(DECLINES_LATER)
    invoices = []
    for amount in (1250, 20, 700):
        world.move(minutes=1)
        invoices.append(world.issue(amount))
    world.beat()
    world.beat()
    with organization_scope(world.id):
        method = CardAccount.objects.get().method_id
    world.control("POST", f"payment_methods/{method}", declines=None)
    answer = body(pay(client, invoices[-1], with_older=True))
    assert (answer["state"], answer["amount_minor"]) == ("succeeded", 1970)
    assert sorted(answer["invoice_ids"]) == sorted(invoices)
    assert [world.charges_of(one) for one in invoices] == [1, 1, 1]


def test_what_cannot_be_paid_is_refused_with_the_reason(world, client, other_tenant, api):
    invoice_id = world.issue(1250)
    small = world.issue(20)
    assert_problem(pay(client, invoice_id), 409, "no_payment_method")
    with organization_scope(world.id):
        CardAccount.objects.create(organization_id=world.id, customer_id="cus_1", method_id="pm_1")
    assert_problem(pay(client, small), 409, "below_card_minimum")
    assert_problem(pay(client, "inv_aaaaaaaaaaaaaaaaaaaa"), 404, "not_found")
    assert_problem(pay(api(other_tenant.key), small), 404, "not_found")
    assert_problem(pay(client, small, witholder=True), 422, "validation_failed")


def test_where_stripe_does_not_answer_the_caller_tries_again_later(world, client):
    world.fault("500", count=None)
    answer = client.request("POST", "/payment-method/setup")
    assert_problem(answer, 503, "unavailable")


def test_where_no_cards_are_taken_nothing_is_offered(world, client, collector):
    collector("transfer", bank_account=("IBAN DE02",))
    for path in ("/payment-method/setup", "/payment-method/portal"):
        assert_problem(client.request("POST", path), 409, "cards_not_taken")
    invoice_id = world.issue(1250)
    assert_problem(pay(client, invoice_id), 409, "cards_not_taken")
    assert body(client.request("GET", "/payment-method"))["collector"] == "transfer"


def test_everybody_sees_what_is_owed_and_those_of_money_pay(world, tenant, api):
    world.give_card(DECLINES_LATER)
    invoice_id = world.issue(1250)
    world.beat()
    viewer = api(tenant.keys[Role.VIEWER])
    account = body(viewer.request("GET", "/account"))
    assert account == {
        "collector": "stripe",
        "stage": "unpaid",
        "currency": "USD",
        "open_minor": 1250,
        "unpaid_minor": 1250,
        "credit_minor": 0,
        "unpaid_since": "2026-10-04T01:00:00Z",
        "unpaid_invoice_ids": [invoice_id],
        "failure": "declined",
        "next_step": {"stage": "suspended", "at": "2026-10-18T01:00:00Z"},
        "next_charge_at": "2026-10-05T01:00:00Z",
    }
    # With roles in projects alone: why clusters are, or will be, suspended, and no amounts.
    member = api(tenant.keys[Role.MEMBER])
    nothing = dict.fromkeys(("open_minor", "unpaid_minor", "credit_minor"))
    assert body(member.request("GET", "/account")) == account | nothing | {"unpaid_invoice_ids": []}
    for method, path in (
        ("POST", f"/invoices/{invoice_id}/pay"),
        ("POST", "/payment-method/setup"),
        ("GET", "/payment-method"),
        ("GET", "/payments"),
    ):
        assert_problem(viewer.request(method, path), 403, "permission_denied")


def test_a_repeated_request_is_the_same_payment(world, client):
    world.give_card()
    invoice_id = world.issue(1250)
    headers = {"Idempotency-Key": "click"}
    first = client.request("POST", f"/invoices/{invoice_id}/pay", {}, headers=headers)
    again = client.request("POST", f"/invoices/{invoice_id}/pay", {}, headers=headers)
    assert body(again) == body(first)
    assert world.charges_of(invoice_id) == 1
