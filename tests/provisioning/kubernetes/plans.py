"""A cell's options, and plans of its clusters."""

from collections.abc import Mapping

from provisioning.cell.drivers.base import BrokerPlan, ClusterPlan
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions

CLUSTER = "cl_golden"
OPTIONS = KubernetesOptions(
    cell="eu-1",
    image="freshet:0.1",
    dfs={"nfs": {"server": "dfs.internal", "path": "/cells/eu-1/{cluster}"}},
    egress=(("10.0.9.0/24", (2379,)), ("0.0.0.0/0", (443,))),
)


def plan_of(
    cluster_id: str = CLUSTER, brokers: int = 1, **sections: Mapping[str, object]
) -> ClusterPlan:
    """Returns a plan as the keeper makes it; `sections` are further sections of the settings."""
    settings = {
        "storage": {
            "dfs": "/cell/dfs",
            "bucket": "s3://records",
            "metadata": "etcd://10.0.9.1:2379/cell",
            "cluster": cluster_id,
        },
        "listener": {"kafka": "127.0.0.1:0", "link_secret": "0" * 32},
        **sections,
    }
    return ClusterPlan(
        cluster_id,
        tuple(
            BrokerPlan(cluster_id, slot, {**settings, "broker": {"node_id": slot}})
            for slot in range(brokers)
        ),
    )
