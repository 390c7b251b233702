"""A broker with content, which all tests of answers share."""

import pytest

# What the scenarios assert is shown as what tests assert.
pytest.register_assert_rewrite("tests.protocol.apis", "tests.protocol.checks")

from tests.protocol.codec import Codec  # noqa: E402
from tests.protocol.running import running_broker  # noqa: E402
from tests.protocol.schemas import error_names, load_schemas  # noqa: E402


@pytest.fixture(scope="session")
def codec():
    """Kafka's schemas and error codes."""
    return Codec(load_schemas(), error_names())


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """A broker of this checkout, with content."""
    with running_broker(tmp_path_factory.mktemp("protocol")) as made:
        made.prepare()
        yield made
