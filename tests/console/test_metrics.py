"""Prometheus metrics of web, workers and the scheduler."""

import urllib.request

import pytest
from django.db import DatabaseError
from prometheus_client import REGISTRY, generate_latest

from console.base.common import metrics, outbox
from console.base.common.metrics import registry_to_serve, route_of, serve_metrics
from console.base.common.tenancy import organization_scope
from console.programs.web import server
from provisioning.reconciling import service as reconciling
from tests.metrics_page import documented, reported_metrics

ORGANIZATION = "org_aaaaaaaaaaaaaaaaaaaa"
LIMIT_S = 30


@pytest.fixture
def metrics_page():
    """Returns the scheduler's metrics page. The collector leaves the shared registry afterwards."""
    collector = metrics.DatabaseCollector()
    REGISTRY.register(collector)
    yield lambda: generate_latest(REGISTRY).decode()
    REGISTRY.unregister(collector)


def value(text, sample):
    (match,) = [line for line in text.splitlines() if line.startswith(f"{sample} ")]
    return float(match.rpartition(" ")[2])


def counted(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0.0


def total(name, **labels):
    samples = [sample for family in REGISTRY.collect() for sample in family.samples]
    return sum(
        sample.value
        for sample in samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_the_page_is_what_every_process_counts():
    assert reconciling.RECONCILES is not None
    assert server.OPEN is not None
    assert reported_metrics(generate_latest(REGISTRY).decode()) == documented(
        "Web, workers, scheduler"
    )


@pytest.mark.django_db(transaction=True)
def test_the_page_is_what_the_scheduler_reports(metrics_page):
    passing = documented("Web, workers, scheduler")
    own = {
        name: text for name, text in reported_metrics(metrics_page()).items() if name not in passing
    }
    assert own == documented("Scheduler")


@pytest.mark.django_db(transaction=True)
def test_what_waits_is_reported_with_its_age(metrics_page, monkeypatch):
    monkeypatch.setattr(outbox, "dispatch_entry", lambda entry_id: False)
    assert value(metrics_page(), "freshet_outbox_entries") == 0
    with organization_scope(ORGANIZATION):
        outbox.enqueue_task(task="x.y", organization_id=ORGANIZATION, arguments={})
    text = metrics_page()
    assert value(text, "freshet_outbox_entries") == 1
    assert value(text, "freshet_outbox_oldest_seconds") >= 0
    assert value(text, 'freshet_operations{state="running",type="create_cluster"}') == 0


@pytest.mark.django_db(transaction=True)
def test_a_part_that_cannot_be_asked_costs_only_itself(metrics_page, monkeypatch):
    def away():
        raise DatabaseError

    monkeypatch.setitem(metrics._sources, "operations", away)
    text = metrics_page()
    assert value(text, 'freshet_estate_unknown{part="operations"}') == 1
    assert value(text, 'freshet_estate_unknown{part="clusters"}') == 0


@pytest.mark.django_db
def test_requests_are_counted_by_route_and_status(client):
    name = "freshet_http_request_seconds_count"
    labels = {"method": "GET", "route": "/healthz", "status": "200"}
    before, missed = counted(name, **labels), total(name, status="404")
    client.get("/healthz")
    client.get("/api/v1/no-such-thing")
    assert (counted(name, **labels), total(name, status="404")) == (before + 1, missed + 1)
    assert "no-such-thing" not in generate_latest(REGISTRY).decode()


def test_a_route_has_no_ids():
    pattern = r"^api/v1/clusters/(?P<cluster>cl_[a-z2-7]{20})/topics/(?P<topic>[^/]+)$"
    assert route_of(pattern) == "/api/v1/clusters/<cluster>/topics/<topic>"


def test_metrics_are_served_where_they_are_asked_for():
    address = serve_metrics("127.0.0.1:0", "test")
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=LIMIT_S) as answer:
        assert "freshet_http_request_seconds" in answer.read().decode()
    # The port is taken, which is logged and raises nothing.
    assert serve_metrics(address, "another") == ""
    assert serve_metrics("", "nowhere") == ""


def test_a_worker_adds_up_its_children(monkeypatch, tmp_path):
    monkeypatch.setenv(metrics.MULTIPROCESS, str(tmp_path))
    assert registry_to_serve(database=False) is not REGISTRY
