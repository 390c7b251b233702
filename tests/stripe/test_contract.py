"""The same calls to the fake and to stripe-mock: members, their types, refusals.

stripe-mock has no state, so its values mean nothing; what is compared is which members an answer
has and of which types they are. Stripe's OpenAPI file says more, so the fake's answers are checked
by it as well.
"""

import json

import pytest
import stripe

from console.programs.stripe_fake.api import ENDPOINTS
from console.programs.stripe_fake.keys import API_VERSION
from tests.stripe.calls import REFUSED, client_of, make_calls
from tests.stripe.description import Description
from tests.stripe.fake import running_fake
from tests.stripe.stripe_mock import KEY, load_description, running_mock

pytestmark = pytest.mark.full

# What only one of the two has, and why.
DIFFERENCES = {
    "charge.refunds only has stripe-mock": "left out since version 2022-11-15, unless expanded",
    "charge.outcome.risk_level only has the fake": "Radar, which the account of stripe-mock lacks",
    "charge.outcome.risk_score only has the fake": "Radar, too",
    "checkout.session.allowed_payment_method_types only has the fake": "new in `endive`",
    "payment_intent.automatic_payment_methods.allow_redirects only has the fake": "left out there",
    "charge.source only has the fake": "null; `endive` has it",
    "payment_intent.source only has the fake": "null; `endive` has it",
    "customer.customer_account only has the fake": "null; the file has it",
    "search_result.total_count only has stripe-mock": "left out unless expanded",
    "search_result.next_page only has the fake": "null; the file has it",
    "setup_intent.customer_account only has the fake": "null; the file has it",
}
# What stripe-mock lets through: it looks into no object that may also be empty, and knows customers
# by two parameters of which one is required.
NOT_REFUSED = {"unknown within", "missing customer"}
# Parameters that `endive` has added.
ADDED = {"POST /v1/checkout/sessions": ["[allowed_payment_method_types]"]}


@pytest.fixture(scope="module")
def mock():
    """The services of the package, of stripe-mock."""
    with running_mock() as address:
        yield client_of(address, KEY)


@pytest.fixture(scope="module")
def answers():
    """What the fake answers to all calls, by their names."""
    with running_fake() as fake:
        return {n: plain(a) for n, a in make_calls(client_of(fake.base, fake.key)).items()}


@pytest.fixture(scope="module")
def description():
    return Description(load_description())


def plain(answer):
    return json.loads(str(answer))


def differences(fake, mock, where):
    """Where two answers differ in shape. What is null or empty in one of them has no shape."""
    if fake is None or mock is None or where.endswith(("metadata", "event.data")):
        return
    if type(fake) is not type(mock):
        yield f"{where} is {type(fake).__name__}, and {type(mock).__name__} of stripe-mock"
    elif isinstance(fake, dict) and fake and mock and not fake.get("deleted"):
        where = fake.get("object", where)
        for name in sorted(mock.keys() - fake.keys()):
            yield f"{where}.{name} only has stripe-mock"
        for name in sorted(fake.keys() - mock.keys()):
            yield f"{where}.{name} only has the fake"
        for name in sorted(fake.keys() & mock.keys()):
            yield from differences(fake[name], mock[name], f"{where}.{name}")
    elif isinstance(fake, list) and fake and mock:
        yield from differences(fake[0], mock[0], f"{where}[]")


def test_both_answer_the_same_calls_with_the_same_members(answers, mock):
    made = make_calls(mock)
    assert made.keys() == answers.keys()
    seen = {
        line
        for name, answer in made.items()
        for line in differences(answers[name], plain(answer), name)
    }
    assert seen == DIFFERENCES.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse_the_same_requests(mock, name):
    call, _ = REFUSED[name]
    if name in NOT_REFUSED:
        assert call(mock).id
        return
    with pytest.raises(stripe.InvalidRequestError):
        call(mock)


def test_answers_are_what_stripes_description_says(answers, description):
    for answer in answers.values():
        items = answer["data"] if answer["object"] in {"list", "search_result"} else [answer]
        for item in items:
            assert description.complaints(item) == [], item["object"]


def test_a_wrong_answer_would_be_seen(answers, description):
    wrong = {**answers["charge"], "amount": "1250"}
    del wrong["paid"]
    assert len(description.complaints(wrong)) == 2
    shorter = {**answers["charge"], "novel": 1}
    del shorter["currency"]
    assert sorted(differences(shorter, answers["charge"], "charge")) == [
        "charge.currency only has stripe-mock",
        "charge.novel only has the fake",
    ]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_parameters_are_in_stripes_description(endpoint, description):
    added = ADDED.get(f"{endpoint.method} {endpoint.path}", [])
    assert description.unknown_parameters(endpoint) == added


def test_the_description_is_not_newer_than_the_fake(description):
    assert description.version <= API_VERSION
