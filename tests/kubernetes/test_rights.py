"""The rights of the service's own parts at the API server: what they need, and nothing else."""

import copy
import http.client
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from tests.kubernetes import installation
from tests.kubernetes.applying import Paths, apply_all, refused, token_of, until
from tests.kubernetes.client import APPLY, Client
from tests.kubernetes.installation import SYSTEM, of_kind, pods_of

pytestmark = pytest.mark.full

CLUSTER = "freshet-cl-rights"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
MORE_VERBS = ("bind", "escalate", "impersonate", "approve", "sign", "use", "*")
APPLIED = ("get", "list", "create", "patch")
# All calls of the driver, by API group and resource.
KEEPER = {
    ("", "namespaces"): {"get", "list", "watch", "create", "patch", "delete"},
    ("", "persistentvolumes"): {*APPLIED, "delete"},
    ("", "persistentvolumeclaims"): {*APPLIED, "delete"},
    ("", "resourcequotas"): set(APPLIED),
    ("", "secrets"): set(APPLIED),
    ("", "serviceaccounts"): set(APPLIED),
    ("", "pods"): {"list", "watch", "delete"},
    ("", "nodes"): {"list", "watch"},
    ("networking.k8s.io", "networkpolicies"): set(APPLIED),
    ("policy", "poddisruptionbudgets"): set(APPLIED),
    ("apps", "deployments"): {*APPLIED, "watch"},
}
# The rights of every user: to read the own identity and the own rights.
EVERYBODY = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"): {"create"},
    ("authorization.k8s.io", "selfsubjectrulesreviews"): {"create"},
    ("authentication.k8s.io", "selfsubjectreviews"): {"create"},
}
OTHERS = ("web", "worker", "gateway", "agent", "migrate")
ASKERS = 8
MADE = {http.client.OK, http.client.CREATED}


@pytest.fixture(scope="module")
def account(control_plane, admin, keeper_rights):
    """Makes a client with the token of a service account."""
    clients = []

    def client_of(name):
        token = token_of(admin, SYSTEM, name)
        clients.append(Client(control_plane.kubeconfig_of(f"account-{name}", token)))
        return clients[-1]

    yield client_of
    for client in clients:
        client.close()


@pytest.fixture(scope="module")
def resources(admin):
    """Every resource and subresource of the API server: group, name, whether it is namespaced."""
    names = [
        ("", resource["name"], resource["namespaced"])
        for resource in admin.get("/api/v1")["resources"]
    ]
    for group in admin.get("/apis")["groups"]:
        path = f"/apis/{group['preferredVersion']['groupVersion']}"
        names += [
            (group["name"], resource["name"], resource["namespaced"])
            for resource in admin.get(path)["resources"]
        ]
    return names


def test_the_api_server_takes_everything(admin, overlay):
    namespace = of_kind(overlay, "Namespace")[SYSTEM]
    assert refused(apply_all(admin, [namespace])) == []
    assert refused(apply_all(admin, overlay, dry_run=True)) == []
    assert {manifest["metadata"].get("namespace", SYSTEM) for manifest in overlay} == {SYSTEM}


def test_every_pod_is_restricted(admin, overlay):
    accounts = of_kind(overlay, "ServiceAccount").values()
    priorities = of_kind(overlay, "PriorityClass").values()
    namespace = of_kind(overlay, "Namespace")[SYSTEM]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert refused(apply_all(admin, [namespace, *priorities, *accounts])) == []
    pods = pods_of(overlay)
    for name, template in pods.items():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **template}
        pod["metadata"] = {**template["metadata"], "name": name}
        assert made(admin, pod) == http.client.CREATED, name
        more = copy.deepcopy(pod)
        more["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        assert made(admin, more) == http.client.FORBIDDEN, name


def made(client, pod):
    path = f"/api/v1/namespaces/{SYSTEM}/pods"
    return client.ask("POST", path, pod, dryRun="All").status


def allowed(client, namespace, group, resource, verb):
    resource, _, part = resource.partition("/")
    attributes = {"group": group, "resource": resource, "subresource": part, "verb": verb}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**attributes, "namespace": namespace}},
    }
    answer = client.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert answer.status == http.client.CREATED, answer
    return answer.document["status"]["allowed"]


def test_the_keeper_may_do_what_its_driver_calls_and_nothing_else(account, resources):
    keeper = account("keeper")
    asked = [
        (namespace, group, name, verb)
        for (group, name, namespaced), verb in product(resources, (*VERBS, *MORE_VERBS))
        # Rights do not depend on the namespace, so one stands for all.
        for namespace in ((SYSTEM,) if namespaced else ("",))
    ]
    with ThreadPoolExecutor(ASKERS) as pool:
        answers = pool.map(lambda right: allowed(keeper, *right), asked)
        permitted = {right[1:] for right, may in zip(asked, answers, strict=True) if may}
    expected = {
        (group, name, verb)
        for (group, name), verbs in (KEEPER | EVERYBODY).items()
        for verb in verbs
    }
    assert permitted == expected


@pytest.mark.parametrize("name", OTHERS)
def test_no_other_part_may_do_anything(account, name):
    client = account(name)
    for namespace in (SYSTEM, CLUSTER, "default", "kube-system"):
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        rules = client.ask("POST", path, review).document["status"]["resourceRules"]
        rights = {
            (group, resource): set(rule["verbs"])
            for rule in rules
            for group, resource in product(rule["apiGroups"], rule["resources"])
        }
        assert rights == EVERYBODY
    for path in ("/api/v1/secrets", f"/api/v1/namespaces/{SYSTEM}/pods", "/api/v1/nodes"):
        assert client.ask("GET", path).status == http.client.FORBIDDEN


def namespace_named(name, level="restricted"):
    labels = {"pod-security.kubernetes.io/enforce": level}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels if level else {}},
    }


def config(kind, version, namespace, **content):
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "made", "namespace": namespace},
        **content,
    }


def tried(client, path, manifest):
    """The API server's answer to a dry run of server-side apply."""
    query = {"fieldManager": "tests", "force": "true", "dryRun": "All"}
    return client.ask("PATCH", path, manifest, kind=APPLY, **query).status


def test_the_keeper_writes_to_namespaces_of_clusters_only(account, admin):
    keeper = account("keeper")
    path = "/api/v1/namespaces/"
    assert refused(apply_all(admin, [namespace_named(CLUSTER)])) == []
    try:
        assert tried(keeper, path + CLUSTER, namespace_named(CLUSTER)) in MADE
        for name, level in product((CLUSTER, "freshet-cl-new"), ("privileged", "baseline")):
            answer = tried(keeper, path + name, namespace_named(name, level))
            assert answer == http.client.FORBIDDEN, level
        bare = namespace_named("freshet-cl-new", "")
        assert tried(keeper, path + "freshet-cl-new", bare) == http.client.FORBIDDEN
        for other in (SYSTEM, "kube-system", "default", "freshet", "another"):
            answer = tried(keeper, path + other, namespace_named(other))
            assert answer == http.client.FORBIDDEN, other
        secret = {"type": "Opaque"}
        for namespace, expected in (
            (CLUSTER, MADE),
            (SYSTEM, {http.client.FORBIDDEN}),
            ("kube-system", {http.client.FORBIDDEN}),
        ):
            secret_config = config("Secret", "v1", namespace, **secret)
            target = f"{path}{namespace}/secrets/made"
            assert tried(keeper, target, secret_config) in expected, namespace
            account_path = f"{path}{namespace}/serviceaccounts/made"
            assert (
                tried(keeper, account_path, config("ServiceAccount", "v1", namespace)) in expected
            )
        delete = keeper.ask("DELETE", path + "default", {"dryRun": ["All"]})
        assert delete.status == http.client.FORBIDDEN
        delete = keeper.ask("DELETE", path + CLUSTER, {"dryRun": ["All"]})
        assert delete.status == http.client.OK
    finally:
        admin.ask("DELETE", path + CLUSTER)


def volume(**source):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": CLUSTER},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            **source,
        },
    }


def test_in_production_the_keeper_makes_no_volume_of_a_nodes_folder(account, admin, tmp_path):
    keeper = account("keeper")
    manifests = installation.production(installation.copy(tmp_path / "kubernetes"))
    policies = [
        manifest
        for manifest in manifests
        if manifest["metadata"]["name"] == "freshet-keeper-volumes"
    ]
    assert len(policies) == 2
    path = f"/api/v1/persistentvolumes/{CLUSTER}"
    shared = volume(nfs={"server": "nfs.example.com", "path": "/exports/cl_rights"})
    local = volume(hostPath={"path": "/etc"})
    assert tried(keeper, path, local) in MADE
    assert refused(apply_all(admin, policies)) == []
    try:
        until(lambda: tried(keeper, path, local) == http.client.FORBIDDEN)
        assert tried(keeper, path, shared) in MADE
        # The policy does not restrict other users.
        assert tried(admin, path, local) in MADE
    finally:
        paths = Paths(admin)
        for policy in policies:
            admin.ask("DELETE", paths.of(policy))
        until(lambda: tried(keeper, path, local) in MADE)
