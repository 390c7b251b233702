"""Apache Kafka is asked the same, and its answers are read as strictly.

So the checker itself is checked by answers that nobody here wrote, and each scenario by the broker
that it speaks of.
"""

import pytest

from tests.protocol.apis.groups import sync_without_protocol_fails
from tests.protocol.apis.repeated import REPEATED, delete_twice_fails, repeated_body
from tests.protocol.apis.table import can_fail, check_failure, check_success
from tests.protocol.dialogue import Dialogue
from tests.protocol.peer_world import running_peer_world
from tests.protocol.running import served_versions

pytestmark = pytest.mark.full

SERVED = served_versions()
# Kafka never answers a user without rights who asks for the passwords of all users (4.3.1).
UNANSWERED = {"DescribeUserScramCredentials"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Apache Kafka with content."""
    with running_peer_world(tmp_path_factory.mktemp("peer")) as made:
        yield made


@pytest.mark.parametrize(("name", "version"), SERVED)
def test_what_succeeds_has_content(world, name, version):
    check_success(world, name, version, replayed=name not in UNANSWERED)


@pytest.mark.parametrize(("name", "version"), [pair for pair in SERVED if can_fail(*pair)])
def test_what_fails_says_why(world, name, version):
    check_failure(world, name, version)


def test_a_member_that_names_no_protocol_is_refused(world):
    sync_without_protocol_fails(Dialogue(world, "SyncGroup", 5))


@pytest.mark.parametrize(("name", "version"), REPEATED)
def test_what_is_named_twice_is_answered_once(world, name, version):
    Dialogue(world, name, version).ask(repeated_body(world, name))


def test_a_topic_that_is_to_be_deleted_twice_is_not(world):
    delete_twice_fails(Dialogue(world, "DeleteTopics", 6))
