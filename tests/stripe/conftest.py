"""A fake for each test, and a client of it."""

import pytest

from tests.stripe.calls import client_of
from tests.stripe.fake import running_fake


@pytest.fixture
def fake():
    """A fake whose state is in memory."""
    with running_fake() as running:
        yield running


@pytest.fixture
def v1(fake):
    """The services of the `stripe` package, without retries of its own."""
    return client_of(fake.base, fake.key)


@pytest.fixture
def customer(v1):
    """A customer without a card."""
    return v1.customers.create({"name": "Ada", "email": "ada@example.com"})
