"""What a cell's Kubernetes is like, and how its brokers shall run there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Stands for the cluster's id in a volume's source.
CLUSTER_PLACE = "{cluster}"


@dataclass(frozen=True)
class Resources:
    """What one broker asks for and may use at most, in Kubernetes' quantities."""

    cpu: str = "250m"
    cpu_max: str = "2"
    memory: str = "256Mi"
    memory_max: str = "2Gi"


@dataclass(frozen=True)
class KubernetesOptions:
    """How brokers of a cell run as pods. Times are in seconds.

    `dfs` is the source of a PersistentVolume as Kubernetes writes it (`csi`, `nfs`, `hostPath`),
    with `{cluster}` where the cluster's own folder goes: every cluster gets a volume of its own, so
    that no broker sees another tenant's files.
    """

    cell: str
    image: str
    dfs: Mapping[str, object]
    image_pull_policy: str = "IfNotPresent"
    command: tuple[str, ...] = ("python", "-m", "brokers", "run")
    # The namespace and the labels of those that may connect to brokers.
    system_namespace: str = "freshet-system"
    # Who the keeper is to the API server.
    identity: str = "system:serviceaccount:freshet-system:keeper"
    resources: Resources = field(default_factory=Resources)
    priority_class: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, object], ...] = ()
    # Further environment of brokers: names of variables to keys of `environment_secret`.
    runtime_class: str = ""
    user: int = 10001
    # A broker that does not serve by then is started anew.
    start_timeout_s: int = 600
    # From SIGTERM to SIGKILL.
    stop_timeout_s: int = 30
    # Where a broker may connect to besides DNS: CIDRs, each with its ports (none: all ports).
    egress: tuple[tuple[str, tuple[int, ...]], ...] = ()
    request_timeout_s: float = 10.0
    sweep_interval_s: float = 60.0
    # How many running brokers of the cell get a new pod at a time.
    rollouts_max: int = 5
    kafka_port: int = 9092
    link_port: int = 9093
    metrics_port: int = 9094
