"""The status of brokers, which names groups and principals: who may connect to it on Kubernetes.

What if the broker of another cluster has the address is in
`../provisioning/control/test_groups_now.py`, and what a broker in a tenant's hands may answer in
`../provisioning/status/`.
"""

from provisioning.cell.drivers.kubernetes.manifests import network_policy
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions
from tests.kubernetes import installation
from tests.provisioning.kubernetes.plans import CLUSTER, OPTIONS

STATUS = KubernetesOptions.metrics_port


def test_only_keeper_and_web_may_go_there(tmp_path):
    manifests = installation.production(installation.copy(tmp_path / "copy"))
    going = {
        name: policy["spec"]["podSelector"]
        for name, policy in installation.of_kind(manifests, "NetworkPolicy").items()
        for rule in policy["spec"].get("egress", [])
        if STATUS in [port["port"] for port in rule.get("ports", [])] or not rule.get("ports")
    }
    assert list(going) == ["broker-status"]
    (expression,) = going["broker-status"]["matchExpressions"]
    assert expression["operator"] == "In"
    assert sorted(expression["values"]) == ["keeper", "web"]
    assert expression["key"] == "app.kubernetes.io/component"


def test_brokers_let_nobody_in_from_outside_of_the_service():
    spec = network_policy(CLUSTER, OPTIONS)["spec"]
    rule, of_brokers = spec["ingress"]
    # Brokers of the cluster's own namespace, on the port where they know each other, and no other.
    (pods,) = of_brokers["from"]
    assert list(pods) == ["podSelector"]
    assert [port["port"] for port in of_brokers["ports"]] == [OPTIONS.brokers_port]
    (peer,) = rule["from"]
    names = peer["namespaceSelector"]["matchLabels"]
    assert names == {"kubernetes.io/metadata.name": OPTIONS.system_namespace}
    assert "Ingress" in spec["policyTypes"]
    assert STATUS in [port["port"] for port in rule["ports"]]
