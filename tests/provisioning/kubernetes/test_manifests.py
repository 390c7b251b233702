"""Tests the objects of a cluster, as the driver sends them to the API server."""

import base64
import json
import os
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from provisioning.cell.drivers.kubernetes.manifests import (
    deployment,
    manifests,
    namespace_of,
    settings_secret,
)
from tests.provisioning.kubernetes.plans import CLUSTER, OPTIONS, plan_of

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("brokers", [1, 3])
def test_objects_are_as_they_were(brokers):
    path = GOLDEN / f"brokers-{brokers}.json"
    text = json.dumps(manifests(plan_of(brokers=brokers), OPTIONS), indent=2) + "\n"
    if os.environ.get("FRESHET_WRITE_GOLDEN"):
        path.write_text(text)
    assert json.loads(path.read_text()) == json.loads(text), "look at each difference"


def test_every_object_is_the_cells_and_the_clusters():
    for manifest in manifests(plan_of(), OPTIONS):
        labels = manifest["metadata"]["labels"]
        assert labels["freshet.dev/cell"] == "eu-1"
        assert labels["freshet.dev/cluster"] == CLUSTER
        assert labels["app.kubernetes.io/managed-by"] == "freshet-keeper"


def test_a_broker_listens_where_its_pod_does():
    secret = settings_secret(plan_of(brokers=2).brokers[1], OPTIONS)
    settings = tomllib.loads(base64.b64decode(secret["data"]["broker.toml"]).decode())
    assert settings["broker"]["node_id"] == 1
    assert settings["storage"]["dfs"] == "/dfs"
    assert settings["storage"]["bucket"] == "s3://records"
    assert settings["listener"]["kafka"] == "0.0.0.0:9092"
    # Without TLS no mechanism may send the password itself beyond the machine.
    assert settings["listener"]["sasl"] == ["SCRAM-SHA-512"]


def test_brokers_reach_each_other_on_one_port_and_no_other():
    (policy,) = [m for m in manifests(plan_of(brokers=3), OPTIONS) if m["kind"] == "NetworkPolicy"]
    peers = [{"podSelector": {"matchLabels": {"app.kubernetes.io/component": "broker"}}}]
    ports = [{"port": 9095, "protocol": "TCP"}]
    rules = policy["spec"]["ingress"] + policy["spec"]["egress"]
    assert [rule for rule in rules if peers in rule.values()] == [
        {"from": peers, "ports": ports},
        {"to": peers, "ports": ports},
    ]
    pod = deployment(CLUSTER, 0, 1, replace(OPTIONS, brokers_port=7))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert '--set=listener.brokers="$(POD_IP):7"' in container["command"]
    # Its address is known in the pod only, so no settings have another one.
    secret = settings_secret(plan_of(listener={"brokers": "127.0.0.1:0"}).brokers[0], OPTIONS)
    settings = tomllib.loads(base64.b64decode(secret["data"]["broker.toml"]).decode())
    assert "brokers" not in settings["listener"]


def test_secrets_stand_in_secrets_only():
    for manifest in manifests(plan_of(listener={"link_secret": "decoy" * 8}), OPTIONS):
        text = json.dumps(manifest)
        decoy = base64.b64encode(b"decoydecoy").decode()[:10]
        assert "decoy" not in text
        assert manifest["kind"] == "Secret" or decoy not in text


def test_where_brokers_run_can_be_said():
    options = replace(
        OPTIONS,
        node_selector={"pool": "brokers"},
        tolerations=({"key": "brokers", "operator": "Exists"},),
        priority_class="brokers",
        runtime_class="gvisor",
    )
    pod = deployment(CLUSTER, 0, 1, options)["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"pool": "brokers"}
    assert pod["tolerations"] == [{"key": "brokers", "operator": "Exists"}]
    assert (pod["priorityClassName"], pod["runtimeClassName"]) == ("brokers", "gvisor")


@pytest.mark.parametrize("cluster_id", ["cl_a/b", "cl_a.b", "cl_ä", "cl_" + "x" * 60, "cl_a b"])
def test_ids_that_make_no_name_are_refused(cluster_id):
    with pytest.raises(ValueError, match="name of a namespace"):
        namespace_of(cluster_id)


def test_a_namespace_is_named_after_its_cluster():
    assert namespace_of("cl_747odetaz2qqqt") == "freshet-cl-747odetaz2qqqt"
