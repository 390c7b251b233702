"""Every answer of every version that a broker advertises, read strictly by Kafka's schemas."""

import struct

import pytest

from tests.protocol.apis.groups import sync_without_protocol_fails
from tests.protocol.apis.records import fetch_body
from tests.protocol.apis.repeated import REPEATED, delete_twice_fails, repeated_body
from tests.protocol.apis.table import SCENARIOS, can_fail, check_failure, check_success
from tests.protocol.connection import ClosedError, Connection
from tests.protocol.dialogue import Dialogue
from tests.protocol.running import (
    advertised,
    running_broker,
    served_versions,
    unserved_versions,
)
from tests.protocol.schemas import load_schemas
from tests.protocol.world import TOPIC

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35
LEADERS_FROM = 16
SERVED = served_versions()


def test_every_advertised_api_is_asked():
    names = {load_schemas().apis[key].name for key in advertised()}
    assert SCENARIOS.keys() == names, "apis/ has scenarios for each that is advertised"


@pytest.mark.parametrize(("name", "version"), SERVED)
def test_what_succeeds_has_content(world, name, version):
    check_success(world, name, version)


@pytest.mark.parametrize(
    ("name", "version"),
    [pair for pair in SERVED if pair[0] not in SCENARIOS or can_fail(*pair)],
)
def test_what_fails_says_why(world, name, version):
    check_failure(world, name, version)


def request_of(key, version):
    """The header of a request that says who asks, and zeros."""
    return struct.pack(">hhih", key, version, 1, -1) + bytes(16)


@pytest.mark.parametrize(
    ("key", "version"), [pair for pair in unserved_versions() if pair[0] != API_VERSIONS]
)
def test_a_version_that_is_not_served_ends_the_connection(world, key, version):
    with Connection(world.place.address, world.place.codec) as connection:
        connection.log_in(world.place.root.user, world.place.root.password)
        connection.send_frame(request_of(key, version))
        with pytest.raises(ClosedError):
            connection.receive_frame()


@pytest.mark.parametrize(
    "version", [version for key, version in unserved_versions() if key == API_VERSIONS]
)
def test_what_is_served_is_said_to_clients_of_other_versions(world, version):
    codec = world.place.codec
    api = codec.schemas.apis[API_VERSIONS]
    with Connection(world.place.address, codec) as connection:
        connection.send_frame(request_of(API_VERSIONS, version))
        answer = codec.answer(api, 0, connection.receive_frame(), 1)
        assert answer["ErrorCode"] == UNSUPPORTED_VERSION
        ranges = {
            entry["ApiKey"]: (entry["MinVersion"], entry["MaxVersion"])
            for entry in answer["ApiKeys"]
        }
        assert ranges == advertised()
        # It goes on in a version that there is.
        assert connection.ask("ApiVersions", 0, {})["ErrorCode"] == 0


def test_a_client_with_an_old_epoch_hears_who_leads(tmp_path):
    with running_broker(tmp_path) as world:
        world.make_topic(TOPIC, 1, {})
    # A broker that takes over leads in a later epoch.
    with running_broker(tmp_path) as world:
        world.wait_led(TOPIC, 1)
        metadata = world.ask("Metadata", {"Topics": [{"Name": TOPIC}]})
        epoch = metadata["Topics"][0]["Partitions"][0]["LeaderEpoch"]
        assert epoch > 0
        asked = {"Partition": 0, "FetchOffset": 0, "CurrentLeaderEpoch": 0}
        for version in (version for name, version in SERVED if name == "Fetch" and version >= 9):
            dialogue = Dialogue(world, "Fetch", version)
            answer = dialogue.ask(fetch_body(world, TOPIC, [asked]))
            assert dialogue.errors(answer) == {"FENCED_LEADER_EPOCH"}
            (result,) = answer["Responses"][0]["Partitions"]
            if version >= LEADERS_FROM:
                (node,) = answer["NodeEndpoints"]
                assert f"{node['Host']}:{node['Port']}" == world.place.address
                leader = {"LeaderId": node["NodeId"], "LeaderEpoch": epoch}
                assert result["CurrentLeader"] == leader


def test_a_member_that_names_no_protocol_is_refused(world):
    dialogue = Dialogue(world, "SyncGroup", 5)
    sync_without_protocol_fails(dialogue)


@pytest.mark.parametrize(("name", "version"), REPEATED)
def test_what_is_named_twice_is_answered_once(world, name, version):
    Dialogue(world, name, version).ask(repeated_body(world, name))


def test_a_topic_that_is_to_be_deleted_twice_is_not(world):
    delete_twice_fails(Dialogue(world, "DeleteTopics", 6))
