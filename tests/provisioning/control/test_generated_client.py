"""A client generated from the OpenAPI file drives the service, and reads all that it answers."""

import importlib
import pkgutil
import sys

import httpx
import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections

from console.base.common.tenancy import system_scope
from provisioning.models import Cluster
from provisioning.reconciling import service as reconciling
from tests.console.fuzzing.described import labels
from tests.provisioning.control.generated import NAME, generate_client
from tests.provisioning.control.world import put_status

SIGN_UP = {
    "email": "ada@looms.example",
    "password": "engines and looms",
    "organization_name": "Looms",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Imports all modules of the generated package; gives them by name."""
    folder = generate_client(tmp_path_factory.mktemp("generated")).parent
    sys.path.insert(0, str(folder))
    try:
        root = importlib.import_module(NAME)
        walked = pkgutil.walk_packages(root.__path__, f"{NAME}.")
        names = {module.name for module in walked}
        modules = {name: importlib.import_module(name) for name in sorted(names)}
        yield modules
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == NAME]:
            del sys.modules[name]


@pytest.fixture
def models(package):
    return package[f"{NAME}.models"]


@pytest.fixture
def call(package, models, signed_up):
    """Calls an operation (`tag.operation_id`) as who signed up; returns status, headers, model."""

    def run(name, *arguments, client=signed_up, **options):
        return package[f"{NAME}.api.{name}"].sync_detailed(*arguments, client=client, **options)

    return run


def client_of(package, key=None):
    """A client that calls the application itself, on the test's thread and connection."""
    clients = package[f"{NAME}.client"]
    options = {
        "base_url": "http://testserver",
        "raise_on_unexpected_status": True,
        "httpx_args": {"transport": httpx.WSGITransport(app=get_wsgi_application())},
    }
    if key is None:
        return clients.Client(**options)
    return clients.AuthenticatedClient(token=key, **options)


@pytest.fixture
def kept_connection(db):
    """Keeps requests from closing the test's connection, as Django's own test client does."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def signed_up(kept_connection, package, models):
    sign_up = package[f"{NAME}.api.signup.signup_create"].sync_detailed
    answer = sign_up(client=client_of(package), body=models.SignUpRequest(**SIGN_UP))
    assert answer.status_code == 201
    assert answer.parsed.organization.id.startswith("org_")
    return client_of(package, answer.parsed.api_key.secret)


@pytest.fixture
def cluster(call, models):
    """Creates a cluster, and waits for its operation as a program would; gives its id."""
    made = call(
        "clusters.clusters_create",
        body=models.ClusterCreateRequest(name="orders", deletion_protection=False),
        idempotency_key="deploy-1",
    )
    assert made.status_code == 202
    operation, cluster_id = made.parsed, made.parsed.resource_id
    with system_scope():
        organization_id = Cluster.objects.get(pk=cluster_id).organization_id

    def reconcile():
        reconciling.reconcile_cluster(organization_id=organization_id, cluster_id=cluster_id)

    reconcile()
    put_status(cluster_id, "running")
    reconcile()
    waited = call("operations.operations_retrieve", operation.id, wait=30).parsed
    assert waited.state is models.OperationState.SUCCEEDED
    put_status(cluster_id, "asleep")
    return cluster_id


def test_a_cluster_with_all_that_an_application_needs(call, models, cluster):
    shown = call("clusters.clusters_retrieve", cluster)
    assert (shown.parsed.name, shown.parsed.spec.scale.max_) == ("orders", 1)
    for name in ("eggs", "figs", "hops"):
        body = models.TopicCreateRequest(name=name, partitions=2)
        topic = call("clusters.clusters_topics_create", cluster, body=body)
        assert (topic.status_code, topic.parsed.partitions) == (201, 2)
    credential = call(
        "clusters.clusters_credentials_create",
        cluster,
        body=models.CredentialCreateRequest(name="app", role=models.CredentialRole.NONE),
    ).parsed
    right = models.AclCreateRequest(
        principal=credential.principal,
        resource_type=models.ResourceTypeEnum.TOPIC,
        resource_name="eggs",
        operation=models.OperationEnum.READ,
    )
    made = call("clusters.clusters_acls_create", cluster, body=right)
    listed = call("clusters.clusters_acls_list", cluster, principal=credential.principal)
    assert [item.id for item in listed.parsed.items] == [made.parsed.id]
    assert call("clusters.clusters_acls_destroy", cluster, made.parsed.id).status_code == 204
    assert credential.password
    assert "freshet_" in call("metrics.metrics_retrieve").parsed


def test_a_list_goes_on_behind_its_cursor(call, models, cluster):
    names = ["eggs", "figs", "hops"]
    items = [models.NewTopicRequest(name=name) for name in names]
    body = models.TopicCreateRequest(items=items)
    made = call("clusters.clusters_topics_create", cluster, body=body)
    assert [item.name for item in made.parsed.items] == names
    first = call("clusters.clusters_topics_list", cluster, limit=2).parsed
    cursor = first.next_cursor
    second = call("clusters.clusters_topics_list", cluster, limit=2, cursor=cursor).parsed
    assert [[item.name for item in page.items] for page in (first, second)] == [
        names[:2],
        names[2:],
    ]
    assert second.next_cursor is None


def test_a_problem_is_read_as_one(call, models, cluster):
    missing = call("clusters.clusters_topics_retrieve", cluster, "none").parsed
    assert isinstance(missing, models.Problem)
    assert (missing.status, missing.code) == (404, "not_found")
    body = models.TopicCreateRequest(name="eggs", partitions=0)
    wrong = call("clusters.clusters_topics_create", cluster, body=body).parsed
    assert wrong.code == "validation_failed"
    assert {error.pointer for error in wrong.errors} == {"/partitions"}


def test_a_repeat_gets_the_first_answer(call, models, cluster):
    create = "clusters.clusters_create"
    body = models.ClusterCreateRequest(name="orders", deletion_protection=False)
    again = call(create, body=body, idempotency_key="deploy-1")
    assert (again.status_code, again.parsed.resource_id) == (202, cluster)
    assert again.headers["Idempotent-Replayed"] == "true"
    other = models.ClusterCreateRequest(name="others")
    refused = call(create, body=other, idempotency_key="deploy-1").parsed
    assert refused.code == "idempotency_key_reused"


def test_a_change_that_is_based_on_something_else_is_refused(call, models, cluster):
    update = "clusters.clusters_partial_update"
    tag = call("clusters.clusters_retrieve", cluster).headers["ETag"]
    body = models.PatchedClusterUpdateRequest(name="renamed")
    changed = call(update, cluster, body=body, if_match=tag)
    assert (changed.status_code, changed.parsed.name) == (200, "renamed")
    stale = call(update, cluster, body=body, if_match=tag).parsed
    assert (stale.status, stale.code) == (412, "precondition_failed")


def test_every_operation_has_a_function(package):
    functions = {name for name, module in package.items() if hasattr(module, "sync_detailed")}
    assert len(functions) == len(labels())
