"""The service with the fake of Stripe: its webhooks are verified and taken, also after kill −9."""

import os
import signal

import httpx
import pytest

from console.programs.stripe_fake.keys import CONTROL_TOKEN, SECRET_KEY
from tests.ports import free_ports
from tests.stripe.calls import client_of

from .run import Run, wait_until

pytestmark = pytest.mark.full


@pytest.fixture
def run(folder):
    """A run on a new home with the fake; what still runs of it at the end is killed."""
    base = f"http://127.0.0.1:{free_ports(1)[0]}"
    extra = {"FRESHET_BILLING_COLLECTOR": "stripe", "FRESHET_BILLING_STRIPE_API_BASE": base}
    run = Run(folder / "home", extra)
    yield run
    if run.started:
        run.kill_everything()


def test_the_fake_delivers_to_the_web_server(run):
    run.up()
    base = run.environment()["FRESHET_BILLING_STRIPE_API_BASE"]
    banner = run.wait_for_line(r"^\s+Stripe\s")
    assert base in banner
    v1 = client_of(base, SECRET_KEY)
    customer = v1.customers.create({"name": "Ada"})
    method = v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    v1.payment_intents.create({
        "amount": 1250, "currency": "usd", "customer": customer.id, "payment_method": method.id,
        "confirm": True, "off_session": True,
    })  # fmt: skip
    wait_until(lambda: states(base) == {("done", 200)}, "every webhook is taken")

    # A forged one is refused, and not tried again.
    event = v1.events.list({"type": "payment_intent.succeeded"}).data[0]
    control(base, "POST", f"events/{event.id}/forge")
    wait_until(lambda: ("failed", 400) in states(base), "the forged webhook is refused")

    # The fake is killed, and goes on with what it knows.
    identity = run.children()["stripe"]
    os.kill(identity.pid, signal.SIGKILL)
    wait_until(lambda: run.children()["stripe"] != identity, "the fake is started again")
    wait_until(lambda: listens(base), "the fake listens")
    assert v1.customers.retrieve(customer.id).name == "Ada"
    assert run.stop() == 0
    assert not listens(base)


def control(base, method, path):
    headers = {"Authorization": f"Bearer {CONTROL_TOKEN}"}
    answer = httpx.request(method, f"{base}/_fake/{path}", headers=headers, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def states(base):
    """The states and last answers of all deliveries."""
    deliveries = control(base, "GET", "deliveries")["data"]
    return {(delivery["state"], delivery["status"]) for delivery in deliveries}


def listens(base):
    try:
        return httpx.get(base, timeout=30).status_code == 200
    except httpx.TransportError:
        return False
