"""Lists in pages, filters by time, search, and objects within answers."""

import pytest
import stripe

from tests.stripe.calls import client_of
from tests.stripe.fake import running_fake


@pytest.fixture
def five(fake, v1, customer):
    """Five intents, ten seconds apart, oldest first; every second one is another customer's."""
    other = v1.customers.create({})
    made = []
    for n in range(5):
        fake.set_time(1_800_000_000 + 10 * n)
        params = {
            "amount": 100 + n,
            "currency": "usd",
            "metadata": {"n": str(n), "odd": str(n % 2)},
        }
        owner = other if n % 2 else customer
        made.append(v1.payment_intents.create({**params, "customer": owner.id}).id)
    return made


def ids(page):
    return [one.id for one in page.data]


def test_a_list_is_newest_first_and_goes_on_after_an_id(v1, five):
    page = v1.payment_intents.list({"limit": 2})
    assert (ids(page), page.has_more) == (five[:2:-1], True)
    page = v1.payment_intents.list({"limit": 3, "starting_after": five[3]})
    assert (ids(page), page.has_more) == (five[2::-1], False)
    page = v1.payment_intents.list({"limit": 2, "ending_before": five[0]})
    assert (ids(page), page.has_more) == ([five[2], five[1]], True)
    assert [one.id for one in v1.payment_intents.list({"limit": 1}).auto_paging_iter()] == five[
        ::-1
    ]


def test_pages_have_limits(v1, five):
    for limit in (0, 101):
        with pytest.raises(stripe.InvalidRequestError):
            v1.payment_intents.list({"limit": limit})
    with pytest.raises(stripe.InvalidRequestError):
        v1.payment_intents.list({"starting_after": "pi_none"})


@pytest.mark.parametrize(
    ("created", "first", "last"),
    [
        ({"gte": 1_800_000_020}, 2, 5),
        ({"gt": 1_800_000_020}, 3, 5),
        ({"lt": 1_800_000_020}, 0, 2),
        ({"lte": 1_800_000_020}, 0, 3),
        ({"gte": 1_800_000_010, "lt": 1_800_000_040}, 1, 4),
        (1_800_000_030, 3, 4),
    ],
)
def test_a_list_is_of_a_time(v1, five, created, first, last):
    assert ids(v1.payment_intents.list({"created": created})) == five[first:last][::-1]


def test_a_list_is_of_a_customer(v1, five, customer):
    assert ids(v1.payment_intents.list({"customer": customer.id})) == five[::-2]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("metadata['odd']:'1'", {1, 3}),
        ('metadata["odd"]:"0" AND amount>100', {2, 4}),
        ("amount>=103 OR metadata['n']:'0'", {0, 3, 4}),
        ("-metadata['odd']:'1' AND created<1800000020", {0}),
        ("status:'requires_payment_method' AND currency:'usd'", {0, 1, 2, 3, 4}),
        ("status:'succeeded'", set()),
    ],
)
def test_search_reads_stripes_queries(v1, five, query, numbers):
    page = v1.payment_intents.search({"query": query, "limit": 100})
    assert {five.index(one) for one in ids(page)} == numbers


@pytest.mark.parametrize("query", ["", "amount", "a:'1' AND", "a:'1' b:'2'", "secret:'1'"])
def test_a_query_that_cannot_be_read_is_refused(v1, query):
    with pytest.raises(stripe.InvalidRequestError):
        v1.payment_intents.search({"query": query})


def test_search_goes_on_by_pages(v1, five):
    page = v1.payment_intents.search({"query": "currency:'usd'", "limit": 2})
    assert [one.id for one in page.auto_paging_iter()] == five[::-1]
    assert v1.customers.search({"query": "email~'ADA'"}).data[0].email == "ada@example.com"


def test_ids_become_objects_where_it_is_asked_for(v1, customer):
    method = v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    intent = v1.payment_intents.create({
        "amount": 1250, "currency": "usd", "customer": customer.id, "confirm": True,
        "payment_method": method.id, "off_session": True,
    })  # fmt: skip
    assert isinstance(intent.latest_charge, str)
    expand = {"expand": ["latest_charge.balance_transaction", "payment_method", "customer"]}
    whole = v1.payment_intents.retrieve(intent.id, expand)
    assert whole.latest_charge.balance_transaction.amount == 1250
    assert whole.customer.email == "ada@example.com"
    page = v1.payment_intents.list({"expand": ["data.latest_charge"]})
    assert page.data[0].latest_charge.paid is True
    for path in ("amount", "latest_charge.amount", "data.customer"):
        with pytest.raises(stripe.InvalidRequestError, match="cannot be expanded"):
            v1.payment_intents.retrieve(intent.id, {"expand": [path]})


def test_metadata_is_merged_and_bounded(v1, customer):
    v1.customers.update(customer.id, {"metadata": {"a": "1", "b": "2"}})
    changed = v1.customers.update(customer.id, {"metadata": {"a": "", "c": "3"}})
    assert changed.metadata.to_dict() == {"b": "2", "c": "3"}
    for bad in ({"k" * 41: "1"}, {"k": "v" * 501}, {f"k{n}": "1" for n in range(51)}):
        with pytest.raises(stripe.InvalidRequestError):
            v1.customers.update(customer.id, {"metadata": bad})


def test_a_deleted_customer_is_gone(v1, customer):
    v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    v1.customers.delete(customer.id)
    assert v1.customers.retrieve(customer.id).deleted is True
    assert v1.customers.list().data == []
    with pytest.raises(stripe.InvalidRequestError):
        v1.payment_intents.create({"amount": 900, "currency": "usd", "customer": customer.id})


def test_a_restart_loses_nothing(tmp_path):
    file = tmp_path / "state.sqlite"
    key = {"idempotency_key": "k1"}
    with running_fake(file) as first:
        first.set_time(1_800_000_000)
        made = client_of(first.base, first.key).customers.create({"name": "Ada"}, key)
        first.add_fault("429", path="/v1/refunds")
    with running_fake(file) as second:
        v1 = client_of(second.base, second.key)
        assert v1.customers.create({"name": "Ada"}, key).id == made.id
        assert v1.customers.create({}).created == 1_800_000_000
        assert len(second.objects("customer")) == 2
        assert len(second.take_webhooks()) == 2
        with pytest.raises(stripe.RateLimitError):
            v1.refunds.list()
