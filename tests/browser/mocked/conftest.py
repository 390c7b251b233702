"""A console without a service, and people at it."""

from __future__ import annotations

import contextlib

import pytest

from tests.browser.mocked.answers import NOW
from tests.browser.mocked.site import serving
from tests.browser.visitor import Visitor


@pytest.fixture(scope="session")
def site():
    """The built console, with an API that answers from examples."""
    with serving() as running_site:
        yield running_site


@pytest.fixture(scope="session")
def people(site, browser):
    """Makes a person with a window of its own, who must have had no complaint at the end."""

    @contextlib.contextmanager
    def person(state=None, base=site.address, **options):
        context = browser.new_context(
            base_url=base, storage_state=state, reduced_motion="reduce", **options
        )
        page = context.new_page()
        page.clock.set_fixed_time(NOW)
        visitor = Visitor(page)
        try:
            yield visitor
            visitor.assert_no_complaints()
        finally:
            context.close()

    return person


@pytest.fixture
def visitor(people, site):
    """A signed-in person at the overview. Fails afterwards if the page complained."""
    with people(site.state) as visitor:
        visitor.open("/")
        yield visitor
