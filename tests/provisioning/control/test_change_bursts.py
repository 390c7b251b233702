"""Many changes by a Kafka client at once: each is in the audit log, in order, once.

Broker, metadata store, client and database are real; the broker and the sweep are killed in
between.
"""

from contextlib import closing
from pathlib import Path

import pytest

from brokers.metadata import Acl
from brokers.metadata_records import ClusterLimits
from brokers.secrets import read_cell_secret, super_password
from console.base.common.conf import config
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from provisioning.administration.services.protocol_changes import MISSING, ingest_protocol_changes
from provisioning.kafka import SUPER_USER
from tests.clients.servers import BrokerServer
from tests.protocol import connection as protocol
from tests.protocol.codec import Codec
from tests.protocol.schemas import error_names, load_schemas
from tests.protocol.world import Account, Place, World, acl
from tests.provisioning.control.world import failing

BURST, AT_ONCE = 5_000, 250
HOSTILE, PASSWORD = "mallory", "a-password-of-hers"
THROTTLED = 89


class Killed(BaseException):
    """What ends a worker here: nothing catches it."""


@pytest.fixture
def broker(cluster_id, store, tmp_path):
    """The cluster's broker as a process of its own, and a user of the tenant who may alter ACLs."""
    cell = config().cell
    storage = {
        "dfs": cell.dfs,
        "bucket": Path(cell.bucket.removeprefix("file://")),
        "metadata": Path(cell.metadata.removeprefix("sqlite://")),
        "cluster": cluster_id,
    }
    password = super_password(read_cell_secret(cell.secret), cluster_id)
    security = {
        "super_users": [f"User:{SUPER_USER}"],
        "users": [{"name": SUPER_USER, "password": password}],
        "allow_everyone_if_no_acl_found": False,
    }
    store.set_user(HOSTILE, PASSWORD)
    who = f"User:{HOSTILE}"
    kind, name = "CLUSTER", "kafka-cluster"
    store.add_acls([Acl(resource_type=kind, resource_name=name, principal=who, operation="ALL")])
    listener = {"sasl": ["PLAIN", "SCRAM-SHA-512"]}
    folder = tmp_path / "broker"
    with BrokerServer(folder, storage=storage, listener=listener, security=security) as server:
        yield server


def clients_of(broker):
    """The hostile user's client."""
    hostile = Account(HOSTILE, PASSWORD)
    return World(Place(broker.bootstrap, Codec(load_schemas(), error_names()), hostile, hostile))


def create(world, numbers):
    """The codes with which ACLs of these numbers are answered, and the time to wait."""
    creations = [acl(f"topic-{number:05}") for number in numbers]
    answer = world.ask("CreateAcls", {"Creations": creations})
    return [result["ErrorCode"] for result in answer["Results"]], answer["ThrottleTimeMs"]


def entries_of(tenant):
    """The entries of the tenant's Kafka clients, by their number."""
    with organization_scope(tenant.id):
        of_kafka = AuditEntry.objects.filter(actor_kind="kafka")
        return sorted(of_kafka, key=lambda entry: int(entry.detail["change"]))


def has_no_gap(tenant):
    with organization_scope(tenant.id):
        return not AuditEntry.objects.filter(action=MISSING).exists()


def test_a_burst_of_changes_is_in_the_log_whole_though_broker_and_sweep_are_killed(
    tenant, cluster_id, broker, store
):
    # Neither the rate nor the number of entries is the question here.
    store.set_limits(ClusterLimits(changes_per_second=1_000_000))

    def sweep():
        return ingest_protocol_changes(organization_id=tenant.id, cluster_id=cluster_id)

    half = BURST // 2
    with closing(clients_of(broker)) as world:
        for first in range(0, half, AT_ONCE):
            assert set(create(world, range(first, first + AT_ONCE))[0]) == {0}
    broker.kill()
    # A sweep that dies after its first page is in the log, and before the cell forgets it.
    with failing("forget_changes", Killed()), pytest.raises(Killed):
        sweep()
    assert 0 < len(entries_of(tenant)) < half
    broker.start()
    with closing(clients_of(broker)) as world:
        for first in range(half, BURST, AT_ONCE):
            assert set(create(world, range(first, first + AT_ONCE))[0]) == {0}
        # There is no room for the one that was to push them out, until they are in the log.
        codes, pause_ms = create(world, [BURST])
        assert codes == [THROTTLED]
        assert pause_ms > 0
        assert sweep() == BURST
        assert create(world, [BURST])[0] == [0]
    assert sweep() == 1
    assert sweep() == 0
    logged = entries_of(tenant)
    # The changes of one request are made together.
    for first in range(0, BURST + 1, AT_ONCE):
        made = sorted(entry.target_id for entry in logged[first : first + AT_ONCE])
        numbers = range(first, min(first + AT_ONCE, BURST + 1))
        assert made == [f"{cluster_id}/topic-{number:05}" for number in numbers]
    assert [int(entry.detail["change"]) for entry in logged] == list(range(1, BURST + 2))
    times = [entry.created_at for entry in logged]
    assert times == sorted(times)
    assert has_no_gap(tenant)


def test_changes_beyond_the_rate_are_refused_with_the_time_to_wait(
    tenant, cluster_id, broker, store
):
    broker.kill()
    store.set_limits(ClusterLimits(changes_per_second=1))
    broker.start()
    with closing(clients_of(broker)) as world:
        world.until(lambda: THROTTLED in create(world, range(100))[0], "the rate is reached")
        codes, pause_ms = create(world, range(10))
        assert set(codes[1:]) == {THROTTLED}
        assert 0 < pause_ms <= 1_000
    ingest_protocol_changes(organization_id=tenant.id, cluster_id=cluster_id)
    assert 200 <= len(entries_of(tenant)) < 300


def test_long_client_ids_take_little_room(tenant, cluster_id, broker, store, monkeypatch):
    monkeypatch.setattr(protocol, "CLIENT_ID", "c" * 32_000)
    with closing(clients_of(broker)) as world:
        assert set(create(world, range(50))[0]) == {0}
    ingest_protocol_changes(organization_id=tenant.id, cluster_id=cluster_id)
    logged = entries_of(tenant)
    assert len(logged) == 50
    assert {len(entry.detail["client_id"]) for entry in logged} == {256}
