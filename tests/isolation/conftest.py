"""Two organizations that share the service: one attacks, the other works meanwhile."""

import pytest

from tests.service.api import Api

# Before a test imports it: this folder is run by itself too.
pytest.register_assert_rewrite("tests.console.cases")


def _organization(service):
    api = Api.sign_up(service.address)
    yield api
    api.leave()


@pytest.fixture
def attacker(service):
    """The API of one organization, as its owner."""
    yield from _organization(service)


@pytest.fixture
def victim(service):
    """The API of another one."""
    yield from _organization(service)
