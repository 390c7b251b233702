"""The deletion guard on a real API server: what it refuses to whom, and the messages."""

import itertools
import threading
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.client import MERGE, Client

pytestmark = pytest.mark.full

GUARD = (
    Path(__file__).parents[2] / "provisioning" / "deliverables" / "kubernetes" / "base" / "guard"
)
POLICIES = "/apis/admissionregistration.k8s.io/v1"
SYSTEM = "freshet-system"
HEALTH = f"/api/v1/namespaces/{SYSTEM}/configmaps/freshet-health"
ANNOTATION = "freshet.dev/break-glass"
LIMIT_S = 60.0
NUMBERS = itertools.count()


def policies():
    names = yaml.safe_load((GUARD / "kustomization.yaml").read_text())["resources"]
    for name in names:
        for document in yaml.safe_load_all((GUARD / name).read_text()):
            plural = (
                "validatingadmissionpolicybindings"
                if document["kind"].endswith("Binding")
                else "validatingadmissionpolicies"
            )
            yield f"{POLICIES}/{plural}/{document['metadata']['name']}", document


@pytest.fixture(scope="module")
def guarded(admin):
    """The policies in force, while deletions are allowed."""
    space = {"metadata": {"name": SYSTEM}, "apiVersion": "v1", "kind": "Namespace"}
    admin.apply(f"/api/v1/namespaces/{SYSTEM}", space)
    set_health(admin, "allowed")
    for path, document in policies():
        assert admin.apply(path, document).status == HTTPStatus.CREATED
    try:
        namespace = make_namespace(admin, live=False)
        # The API server loads all policies together: once the last one works, the others do.
        until(lambda: dry_annotate(admin, namespace).status, refused(True))
        for hold in ("held", "allowed"):
            # The API server reads policies and their parameters by watches, so it follows a moment
            # later.
            set_health(admin, hold)
            until(lambda hold=hold: dry_delete(admin, namespace).status, refused(hold == "held"))
        yield admin
    finally:
        for path, _ in policies():
            admin.ask("DELETE", path)


@pytest.fixture
def held(guarded):
    """The policies in force, while deletions are held."""
    namespace = make_namespace(guarded, live=False)
    set_health(guarded, "held")
    until(lambda: dry_delete(guarded, namespace).status, refused(True))
    yield guarded
    set_health(guarded, "allowed")
    until(lambda: dry_delete(guarded, namespace).status, refused(False))


@pytest.fixture
def operator(control_plane):
    client = Client(control_plane.kubeconfig("operator"))
    yield client
    client.close()


def refused(whether):
    return HTTPStatus.FORBIDDEN if whether else HTTPStatus.OK


def until(ask, expected):
    pause = threading.Event()
    for _ in range(int(LIMIT_S / 0.05)):
        if ask() == expected:
            return
        pause.wait(0.05)
    message = f"{ask()}, want {expected}"
    raise AssertionError(message)


def set_health(client, deletions):
    data = {"deletions": deletions, "reason": "3 of 4 brokers do not serve"}
    named = {"name": "freshet-health", "namespace": SYSTEM}
    client.apply(HEALTH, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data})


def make_namespace(client, *, live):
    name = f"freshet-guarded-{next(NUMBERS)}"
    labels = {"freshet.dev/cell": "guarded", "freshet.dev/cluster": "cl_guarded"}
    if live:
        labels["freshet.dev/live-data"] = "true"
    made = client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    assert made.status == HTTPStatus.CREATED, made
    return name


def dry_delete(client, namespace):
    return client.ask("DELETE", f"/api/v1/namespaces/{namespace}", dryRun="All")


def dry_annotate(client, namespace):
    change = {"metadata": {"annotations": {ANNOTATION: "aud_1"}}}
    path = f"/api/v1/namespaces/{namespace}"
    return client.ask("PATCH", path, change, kind=MERGE, dryRun="All")


def delete(client, namespace):
    return client.ask("DELETE", f"/api/v1/namespaces/{namespace}")


def annotate(client, namespace, value="aud_7"):
    change = {"metadata": {"annotations": {ANNOTATION: value}}}
    return client.patch(f"/api/v1/namespaces/{namespace}", change)


def test_a_namespace_with_records_is_deleted_by_nobody(guarded, operator):
    name = make_namespace(guarded, live=True)
    for client in (guarded, operator):
        answer = delete(client, name)
        assert answer.status == HTTPStatus.FORBIDDEN
        assert "holds records of cluster cl_guarded" in answer.message
        assert "breaks the glass in Freshet" in answer.message


def test_one_that_is_purged_and_those_of_others_can_go(guarded):
    assert delete(guarded, make_namespace(guarded, live=False)).status == HTTPStatus.OK
    guarded.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "of-somebody-else"}})
    assert delete(guarded, "of-somebody-else").status == HTTPStatus.OK


def test_only_freshet_says_that_it_is_purged(guarded, control_plane):
    name = make_namespace(guarded, live=True)
    for value in ("false", None):
        change = {"metadata": {"labels": {"freshet.dev/live-data": value}}}
        answer = guarded.patch(f"/api/v1/namespaces/{name}", change)
        assert answer.status == HTTPStatus.FORBIDDEN
        assert "when the cluster is purged" in answer.message
    keeper = Client(control_plane.kubeconfig("keeper"))
    assert keeper.patch(f"/api/v1/namespaces/{name}", change).status == HTTPStatus.OK
    keeper.close()
    assert delete(guarded, name).status == HTTPStatus.OK


def test_the_glass_is_broken_by_its_group_only(guarded, operator):
    name = make_namespace(guarded, live=True)
    answer = annotate(guarded, name)
    assert answer.status == HTTPStatus.FORBIDDEN
    assert "an operator asks it to" in answer.message
    named = {"name": f"{name}-born-broken", "annotations": {ANNOTATION: "aud_7"}}
    born = guarded.ask("POST", "/api/v1/namespaces", {"metadata": named})
    assert born.status == HTTPStatus.FORBIDDEN
    assert annotate(operator, name).status == HTTPStatus.OK
    assert annotate(guarded, name, "aud_8").status == HTTPStatus.FORBIDDEN
    assert annotate(guarded, name, None).status == HTTPStatus.OK, "anybody may mend it"
    assert annotate(operator, name).status == HTTPStatus.OK
    assert delete(guarded, name).status == HTTPStatus.OK


def test_while_brokers_are_unhealthy_nothing_goes(held, operator):
    name = make_namespace(held, live=False)
    labels = {"freshet.dev/cell": "guarded"}
    named = {"name": "broker-0", "labels": labels}
    container = {"name": "broker", "image": "none"}
    deployment = {
        "metadata": named,
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    claim = {
        "metadata": named,
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    spaces = {
        f"/apis/apps/v1/namespaces/{name}/deployments": deployment,
        f"/api/v1/namespaces/{name}/persistentvolumeclaims": claim,
    }
    for path, document in spaces.items():
        assert held.ask("POST", path, document).status == HTTPStatus.CREATED
    paths = [f"{path}/broker-0" for path in spaces] + [f"/api/v1/namespaces/{name}"]
    for path in [*paths, *spaces]:
        answer = held.ask("DELETE", path)
        assert answer.status == HTTPStatus.FORBIDDEN, path
        assert "deletions are held while brokers are unhealthy" in answer.message
        assert "3 of 4 brokers do not serve" in answer.message
        assert "Repair them first" in answer.message
    assert annotate(operator, name).status == HTTPStatus.OK
    for path in paths:
        # Policies read namespaces from the API server's cache, which follows a moment later.
        until(lambda path=path: held.ask("DELETE", path).status, HTTPStatus.OK)


def test_while_brokers_are_unhealthy_nothing_is_evicted(held):
    name = make_namespace(held, live=False)
    account = {"metadata": {"name": "default"}}
    held.ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    pods = f"/api/v1/namespaces/{name}/pods"
    spec = {"containers": [{"name": "broker", "image": "none"}]}
    made = held.ask("POST", pods, {"metadata": {"name": "pod"}, "spec": spec})
    assert made.status == HTTPStatus.CREATED, made
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "pod", "namespace": name},
    }
    answer = held.ask("POST", f"{pods}/pod/eviction", eviction)
    assert answer.status == HTTPStatus.FORBIDDEN
    assert "evictions are held while brokers are unhealthy" in answer.message
    set_health(held, "allowed")
    until(lambda: held.ask("POST", f"{pods}/pod/eviction", eviction).status, HTTPStatus.CREATED)
