"""From a client's records to an invoice, exact to the byte, with pods, etcd and S3.

A client outside the pods' network produces and reads while its broker is killed and its pod is
deleted. A metering agent reads lanes and writes usage files into S3. The control plane takes them
in, Spark rolls them up there, and the invoice is issued. Its quantities are compared with the
records on storage, which are read without any of our code.
"""

import dataclasses
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from billing.services.issuing import issue_month
from console.base.accounts.models import Project
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope, system_scope
from metering.choices import RunState
from metering.models import ProvisionalMinute, UsageRow
from metering.services.ingest import ingest_usage
from metering.services.rollup import roll_up
from provisioning.models import Cell, Cluster
from spark_usage.jars import POM as S3A_POM
from tests.billing.world import invoices_of
from tests.console.factories import make_tenant
from tests.gateway.cells import USER, GatewayServer, until
from tests.gateway.test_wake import login
from tests.kubernetes.pods.agent import AgentServer
from tests.kubernetes.pods.load import TIMEOUT_S, Producer, consume
from tests.kubernetes.pods.world import PodCell, S3Bucket
from tests.metering.proof.stored import by_topic_and_principal, counted_egress, stored_bytes
from tests.peer.jars import jar_folder
from tests.s3 import running_s3

pytestmark = pytest.mark.full

CLUSTER = "cl_invoiced"
LANE = {"file_bytes_first": 65536, "file_bytes_max": 4 << 20, "roll_after_ms": 1000}


@pytest.fixture
def s3(kubernetes, tmp_path):
    """An S3 server that pods can reach, with a bucket for records and one for usage."""
    folder = tmp_path / "s3"
    folder.mkdir()
    with running_s3(folder, host=kubernetes.network.outside) as server:
        for name in ("records", "usage"):
            server.make_bucket(name)
        yield server


@pytest.fixture
def tenant(db):
    """The organization that gets the invoice."""
    return make_tenant("Acme")


@pytest.fixture
def cell(kubernetes, image, etcd, s3, tenant, tmp_path, settings):
    """A cell with etcd and S3, and a control plane with the same locations."""
    pod_cell = PodCell(tmp_path / "cell-invoiced", kubernetes, image, etcd, S3Bucket(s3, "records"))
    known = config()
    usage = dataclasses.replace(
        known.usage,
        location=s3.location("usage"),
        rollups=str(tmp_path / "rollups"),
        spark_master="local[2]",
        spark_jars=str(jar_folder(S3A_POM)),
    )
    billing = dataclasses.replace(known.billing, documents=str(tmp_path / "documents"))
    settings.FRESHET = dataclasses.replace(known, usage=usage, billing=billing)
    yield pod_cell
    pod_cell.remove_cluster(CLUSTER)
    pod_cell.close()


@pytest.fixture
def spec(cell, tenant):
    """A cluster of the tenant, in the cell and in the control plane."""
    cell.add_volume(CLUSTER)
    now = datetime.now(UTC)
    row, _ = Cell.objects.get_or_create(id=config().cell.id, defaults={"region": "local"})
    with organization_scope(tenant.id):
        Cluster.objects.create(
            id=CLUSTER,
            organization_id=tenant.id,
            project=Project.objects.get(organization_id=tenant.id, is_default=True),
            cell=row,
            name="orders",
            host="cl-invoiced",
            ports=[],
            created_at=now,
            provisioned_at=now,
        )
    return cell.add_cluster(CLUSTER, organization_id=tenant.id)


def use(cell, spec):
    """Produces and reads while the broker is killed and its pod deleted; then puts it to sleep."""
    admin = AdminClient(login(spec))
    topic = NewTopic("orders", 3, config={"retention.ms": "-1"})
    admin.create_topics([topic])["orders"].result(TIMEOUT_S)
    del admin
    with Producer(login(spec), "orders", name=USER) as producer:
        producer.wait_for_more(500)
        cell.kill_broker(spec.id)
        producer.wait_for_more(500)
        cell.delete_pod(spec.id, grace_s=0)
        producer.wait_for_more(500)
    assert consume(login(spec), "orders", len(producer.places)) == producer.places
    cell.store.put_spec(dataclasses.replace(spec, generation=2, idle_timeout_ms=1_000))
    cell.wait_phase(spec.id, "asleep")
    until(lambda: not cell.pods(spec.id), "no pod of a cluster that sleeps")


def sums(rows):
    """The sums of quantities by meter, topic and principal."""
    totals: Counter[tuple[str, str, str]] = Counter()
    with system_scope():
        for row in rows:
            totals[row.meter, row.topic_id, row.principal] += int(row.quantity)
    return totals


def minutes():
    """The sums of the minutes that the control plane took in."""
    ingest_usage(limit_s=TIMEOUT_S, wait=True)
    return sums(ProvisionalMinute.objects.filter(billed=True))


def of_traffic(quantities):
    return {
        key: size for key, size in quantities.items() if key[0] in {"ingress_bytes", "egress_bytes"}
    }


def truth(scan):
    """The same sums, from the records on storage and the bytes that brokers counted as sent."""
    mine = {topic.id.hex for topic in scan.topics.values() if not topic.name.startswith("__")}
    quantities = {
        ("ingress_bytes", topic, f"User:{who}"): size
        for (topic, who), size in by_topic_and_principal(stored_bytes(scan)).items()
    }
    egress = counted_egress(scan)
    return quantities | {("egress_bytes", t, who): n for (t, who), n in egress.items() if t in mine}


@pytest.mark.timeout(600)
def test_an_invoice_is_what_storage_holds(cell, spec, tenant, s3):
    began = datetime.now(UTC)
    with cell.keeper(lane=LANE), GatewayServer(cell), AgentServer(cell, s3.location("usage")):
        use(cell, spec)
        expected = truth(cell.scan(spec.id))
        until(lambda: of_traffic(minutes()) == expected, f"usage of {expected}")
    (ingress,) = [n for key, n in expected.items() if key[0] == "ingress_bytes"]
    (egress,) = [n for key, n in expected.items() if key[0] == "egress_bytes"]
    assert egress >= ingress > 0
    day = began.date()
    while day <= datetime.now(UTC).date():
        run = roll_up(day=day, early=True)
        assert run.state == RunState.PUBLISHED
        day += timedelta(days=1)
    with system_scope():
        billed = list(UsageRow.objects.filter(granularity="day", billed=True).current())
    assert of_traffic(sums(billed)) == expected
    month = began.date().replace(day=1)
    issue_month(month=month, by="tests", organization_id=tenant.id, close_early="a test")
    (invoice,) = invoices_of(tenant.id)
    lines = {line.meter: int(line.quantity) for line in invoice.lines.all() if line.quantity}
    assert lines["ingress_bytes"] == ingress
    assert lines["egress_bytes"] == egress
    assert {line.cluster for line in invoice.lines.all()} == {"orders"}
