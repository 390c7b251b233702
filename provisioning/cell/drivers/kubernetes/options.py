"""What a cell's Kubernetes is like, and how its brokers shall run there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from brokers.settings.fields import REQUIRED, setting

# Stands for the cluster's id in a volume's source.
CLUSTER_PLACE = "{cluster}"


@dataclass(frozen=True)
class Resources:
    """What one broker asks for and may use at most, in Kubernetes' quantities."""

    cpu: str = setting("250m", "Cores that are kept for it.")
    cpu_max: str = setting("2", "Cores at most.")
    memory: str = setting("256Mi", "Memory that is kept for it.")
    memory_max: str = setting("2Gi", "Memory at most.")


@dataclass(frozen=True)
class KubernetesOptions:
    """How brokers of a cell run as pods. Times are in seconds.

    `dfs` is the source of a PersistentVolume as Kubernetes writes it (`csi`, `nfs`, `hostPath`),
    with `{cluster}` where the cluster's own folder goes: every cluster gets a volume of its own, so
    that no broker sees another tenant's files.
    """

    cell: str = setting(REQUIRED, "The cell's name, which labels all that is its own.")
    image: str = setting(REQUIRED, "Freshet's image.")
    dfs: Mapping[str, object] = setting(
        REQUIRED,
        "The source of a PersistentVolume for each cluster, such as `{ nfs = "
        '{ server = "dfs", path = "/cell/{cluster}" } }`; '
        "`{cluster}` stands for the cluster's id.",
        wanted="a table",
    )
    image_pull_policy: str = setting("IfNotPresent", "When nodes fetch the image.")
    command: tuple[str, ...] = setting(
        ("python", "-m", "brokers", "run"), "What a broker's pod runs."
    )
    system_namespace: str = setting(
        "freshet-system", "The namespace of those that may connect to brokers."
    )
    identity: str = setting(
        "system:serviceaccount:freshet-system:keeper",
        "Who the keeper is to the API server. As this one and the group `freshet:break-glass` it "
        "lets a namespace be deleted that staff permitted.",
    )
    resources: Resources = setting(Resources(), "What a broker asks for, and may use at most.")
    priority_class: str = setting("", "Of brokers' pods.")
    node_selector: Mapping[str, str] = setting({}, "Labels of the nodes that take brokers.")
    tolerations: tuple[Mapping[str, object], ...] = setting(
        (), "Of brokers' pods.", wanted="a list of tables"
    )
    runtime_class: str = setting("", "Of brokers' pods.")
    user: int = setting(10001, "The user and group that brokers run as.", minimum=1)
    start_timeout_s: int = setting(
        600, "A broker that does not serve by then is started anew.", minimum=1
    )
    stop_timeout_s: int = setting(30, "From SIGTERM to SIGKILL.", minimum=1)
    egress: tuple[tuple[str, tuple[int, ...]], ...] = setting(
        (),
        'Where brokers may connect to besides DNS, such as `[["10.0.9.0/24", [2379]]]`; no ports: '
        "all.",
        wanted='a list such as [["10.0.0.0/8", [2379]]]',
    )
    request_timeout_s: float = setting(
        10.0, "How long one call to the API server may take.", above=0
    )
    sweep_interval_s: float = setting(
        60.0, "Between two rounds that repair what somebody changed.", above=0
    )
    rollouts_max: int = setting(
        5,
        "How many running brokers get a new pod at a time, for another image or other resources; "
        "of a cluster one. Where these do not come to serve, no further ones are changed.",
        minimum=1,
    )
    kafka_port: int = setting(
        9092,
        "Where a broker's pod listens for Kafka clients of the cell: control plane and keeper.",
        minimum=1,
    )
    link_port: int = setting(9093, "The same for gateways.", minimum=1)
    metrics_port: int = setting(9094, "The same for `/metrics` and `/healthz`.", minimum=1)
