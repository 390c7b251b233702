"""Options of the Kubernetes driver: what the cell's Kubernetes is like, and how brokers run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from brokers.settings.fields import REQUIRED, setting

# This text in a volume's source is replaced by the cluster's id.
CLUSTER_PLACE = "{cluster}"


@dataclass(frozen=True)
class Resources:
    """The resource requests and limits of one broker, as Kubernetes quantities."""

    cpu: str = setting("250m", "Cores that are reserved for it.")
    cpu_max: str = setting("2", "Cores at most.")
    memory: str = setting("256Mi", "Memory that is reserved for it.")
    memory_max: str = setting("2Gi", "Memory at most.")


@dataclass(frozen=True)
class KubernetesOptions:
    """How the brokers of a cell run as pods. Times are in seconds.

    `dfs` is the source of a PersistentVolume as Kubernetes writes it (`csi`, `nfs`, `hostPath`),
    with `{cluster}` where the cluster's own folder goes: every cluster gets a volume of its own, so
    that no broker sees another tenant's files.
    """

    cell: str = setting(REQUIRED, "The cell's name, which labels all of its objects.")
    image: str = setting(REQUIRED, "The image that brokers run.")
    dfs: Mapping[str, object] = setting(
        REQUIRED,
        "The source of a PersistentVolume for each cluster, such as `{ nfs = "
        '{ server = "dfs", path = "/cell/{cluster}" } }`; '
        "`{cluster}` stands for the cluster's id.",
        expected="a table",
    )
    image_pull_policy: str = setting("IfNotPresent", "When nodes fetch the image.")
    command: tuple[str, ...] = setting(
        ("python", "-m", "brokers", "run"), "The command of a broker's pod."
    )
    system_namespace: str = setting(
        "freshet-system", "The namespace whose pods may connect to brokers."
    )
    identity: str = setting(
        "system:serviceaccount:freshet-system:keeper",
        "The keeper's user name at the API server. With it and the group `freshet:break-glass` the "
        "keeper permits the deletion of a namespace that staff approved.",
    )
    resources: Resources = setting(Resources(), "What a broker reserves, and may use at most.")
    priority_class: str = setting("", "The PriorityClass of brokers' pods; empty: none.")
    node_selector: Mapping[str, str] = setting({}, "Labels of the nodes that take brokers.")
    tolerations: tuple[Mapping[str, object], ...] = setting(
        (), "The tolerations of brokers' pods.", expected="a list of tables"
    )
    runtime_class: str = setting("", "The RuntimeClass of brokers' pods; empty: none.")
    user: int = setting(10001, "The user and group that brokers run as.", minimum=1)
    start_timeout_s: int = setting(
        600, "A broker that does not serve within this time is started again.", minimum=1
    )
    stop_timeout_s: int = setting(30, "Time from SIGTERM to SIGKILL.", minimum=1)
    egress: tuple[tuple[str, tuple[int, ...]], ...] = setting(
        (),
        "Networks and ports that brokers may connect to besides DNS, such as "
        '`[["10.0.9.0/24", [2379]]]`; an empty list of ports permits all.',
        expected='a list such as [["10.0.0.0/8", [2379]]]',
    )
    request_timeout_s: float = setting(
        10.0, "How long one call to the API server may take.", above=0
    )
    sweep_interval_s: float = setting(
        60.0, "Interval at which objects that somebody changed are repaired.", above=0
    )
    rollouts_max: int = setting(
        5,
        "How many running brokers get a new pod at a time, for another image or other resources; "
        "of one cluster only one. While these do not serve, no further broker gets one.",
        minimum=1,
    )
    kafka_port: int = setting(
        9092,
        "The port where a broker's pod listens for the control plane's Kafka client.",
        minimum=1,
    )
    link_port: int = setting(9093, "The port where it listens for gateways.", minimum=1)
    metrics_port: int = setting(
        9094,
        "The port of its `/metrics`, `/healthz` and `/status`, for keeper and control plane.",
        minimum=1,
    )
    brokers_port: int = setting(
        9095, "The port where it listens for the other brokers of its cluster.", minimum=1
    )
