"""The Kubernetes objects of a cluster, as pure functions of its plan.

They are written in the form in which the API server returns them, so that both can be compared:
quantities in their shortest form, numbers as numbers, no empty lists.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from brokers.settings.writing import sections_toml
from provisioning.cell.drivers.base import BrokerPlan, ClusterPlan
from provisioning.cell.drivers.kubernetes.options import CLUSTER_PLACE, KubernetesOptions

Manifest = dict[str, Any]

# The field manager of server-side apply, and the labels by which the cell's objects are found.
MANAGER = "freshet-keeper"
MANAGED_BY = "app.kubernetes.io/managed-by"
CELL = "freshet.dev/cell"
CLUSTER = "freshet.dev/cluster"
# A namespace with this label holds records: the admission policies refuse to delete it.
LIVE_DATA = "freshet.dev/live-data"
SLOT = "freshet.dev/slot"
PART = "app.kubernetes.io/component"
BROKER = "broker"

BROKERS = "brokers"
SETTINGS_FOLDER = "/etc/freshet"
SETTINGS_FILE = "broker.toml"
DFS = "dfs"
DFS_FOLDER = "/dfs"
# The container's environment variables with the address of its pod, and with the zone of its node.
POD_IP = "POD_IP"
ZONE = "ZONE"
ZONE_LABEL = "topology.kubernetes.io/zone"
HOST_LABEL = "kubernetes.io/hostname"
SCRATCH_FOLDER = "/tmp"  # noqa: S108 (an empty volume of the pod)
# The size of the volume and its claim. The file system is shared and nothing is reserved, so only
# their being equal matters.
DFS_CAPACITY = "1Ti"
PROBE_PERIOD_S = 2


def namespace_of(cluster_id: str) -> str:
    """The name of a cluster's namespace: its id, written by the rules of a DNS label.

    Raises `ValueError` where the id makes no such label.
    """
    name = "freshet-" + cluster_id.lower().replace("_", "-")
    if len(name) > 63 or not name.replace("-", "").isalnum() or not name.isascii():
        message = f"{cluster_id!r} is no cluster id that makes the name of a namespace"
        raise ValueError(message)
    return name


def manifests(plan: ClusterPlan, options: KubernetesOptions) -> list[Manifest]:
    """All objects of a cluster that runs, in the order in which they must be created."""
    return [
        *surroundings(plan.cluster_id, len(plan.brokers), options),
        *(settings_secret(broker, options) for broker in plan.brokers),
        *(deployment(plan.cluster_id, broker.slot, 1, options) for broker in plan.brokers),
    ]


def surroundings(cluster_id: str, brokers: int, options: KubernetesOptions) -> list[Manifest]:
    """The objects that a cluster has whether it sleeps or runs.

    `brokers`: how many it has awake.
    """
    return [
        namespace(cluster_id, options),
        claim(cluster_id, options),
        volume(cluster_id, options),
        resource_quota(brokers, cluster_id, options),
        service_account(cluster_id, options),
        network_policy(cluster_id, options),
        disruption_budget(brokers, cluster_id, options),
    ]


def broker_name(slot: int) -> str:
    """The name of a broker's Deployment and of the Secret with its settings."""
    return f"{BROKER}-{slot}"


def selector(options: KubernetesOptions) -> str:
    """The label selector of all objects of the cell."""
    return f"{MANAGED_BY}={MANAGER},{CELL}={options.cell}"


def metadata(
    cluster_id: str, options: KubernetesOptions, name: str, **labels: str
) -> dict[str, Any]:
    """The metadata of an object of a cluster: its name, namespace and labels."""
    return {
        "name": name,
        "namespace": namespace_of(cluster_id),
        "labels": {
            MANAGED_BY: MANAGER,
            CELL: options.cell,
            CLUSTER: cluster_id,
            **labels,
        },
    }


def namespace(cluster_id: str, options: KubernetesOptions) -> Manifest:
    """The Namespace of a cluster. Its pods must keep to the *restricted* Pod Security Standard."""
    named = metadata(
        cluster_id,
        options,
        namespace_of(cluster_id),
        **{
            LIVE_DATA: "true",
            "pod-security.kubernetes.io/enforce": "restricted",
            "pod-security.kubernetes.io/warn": "restricted",
        },
    )
    del named["namespace"]
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": named}


def resource_quota(brokers: int, cluster_id: str, options: KubernetesOptions) -> Manifest:
    """Limits the pods to twice the brokers: each one may have a second pod while it is replaced."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata(cluster_id, options, BROKERS),
        "spec": {"hard": {"pods": str(2 * brokers), "services": "0"}},
    }


def service_account(cluster_id: str, options: KubernetesOptions) -> Manifest:
    """The account of broker pods. It mounts no token, because brokers never call the API server."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(cluster_id, options, BROKERS),
        "automountServiceAccountToken": False,
    }


def network_policy(cluster_id: str, options: KubernetesOptions) -> Manifest:
    """Lets in the service's own pods on the brokers' ports, and out DNS, metadata and storage.

    The brokers of a cluster reach each other on one port, and no others.
    """
    own = {
        "namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": options.system_namespace}
        }
    }
    ports = [options.kafka_port, options.link_port, options.metrics_port]
    peers = [{"podSelector": {"matchLabels": {PART: BROKER}}}]
    between = _tcp_ports([options.brokers_port])
    dns = {"ports": [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]}
    egress = [
        {"to": [{"ipBlock": {"cidr": cidr}}], **({"ports": _tcp_ports(ports)} if ports else {})}
        for cidr, ports in options.egress
    ]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(cluster_id, options, BROKERS),
        "spec": {
            "podSelector": {},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"from": [own], "ports": _tcp_ports(ports)},
                {"from": peers, "ports": between},
            ],
            "egress": [dns, {"to": [own]}, {"to": peers, "ports": between}, *egress],
        },
    }


def _tcp_ports(ports: tuple[int, ...] | list[int]) -> list[dict[str, Any]]:
    return [{"port": port, "protocol": "TCP"} for port in ports]


# The fields in which a volume and its claim must be equal.
SHARED = {"accessModes": ["ReadWriteMany"], "volumeMode": "Filesystem"}


def claim(cluster_id: str, options: KubernetesOptions) -> Manifest:
    """The claim by which pods mount the cluster's volume.

    It names no volume itself, so Kubernetes binds it as soon as a volume names it. If claim and
    volume named each other, two workers of Kubernetes would each bind one half, and the second one
    would fail and begin again 15 s later.
    """
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(cluster_id, options, DFS),
        "spec": {
            **SHARED,
            # Empty means no class; leaving it out would mean the default class.
            "storageClassName": "",
            "selector": {"matchLabels": {CELL: options.cell, CLUSTER: cluster_id}},
            "resources": {"requests": {"storage": DFS_CAPACITY}},
        },
    }


def volume(cluster_id: str, options: KubernetesOptions) -> Manifest:
    """The PersistentVolume with the cluster's folder of the shared file system; see `reserved`."""
    name = namespace_of(cluster_id)
    named = metadata(cluster_id, options, name)
    del named["namespace"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": named,
        "spec": {
            **SHARED,
            **_fill_placeholder(options.dfs, cluster_id),
            "capacity": {"storage": DFS_CAPACITY},
            "claimRef": {"name": DFS, "namespace": name},
            # Kubernetes must never delete records.
            "persistentVolumeReclaimPolicy": "Retain",
        },
    }


def reserved_volume(volume: Manifest, claim_uid: str) -> Manifest:
    """The volume reserved for the claim with this uid, not for an earlier one of that name."""
    spec = volume["spec"]
    return {**volume, "spec": {**spec, "claimRef": {**spec["claimRef"], "uid": claim_uid}}}


def _fill_placeholder(source: Any, cluster_id: str) -> Any:  # noqa: ANN401 (JSON)
    if isinstance(source, str):
        return source.replace(CLUSTER_PLACE, cluster_id)
    if isinstance(source, Mapping):
        return {name: _fill_placeholder(value, cluster_id) for name, value in source.items()}
    if isinstance(source, list | tuple):
        return [_fill_placeholder(value, cluster_id) for value in source]
    return source


def settings_secret(broker: BrokerPlan, options: KubernetesOptions) -> Manifest:
    """The Secret with the files that a broker reads at its start, its settings among them."""
    files = {**broker.files, SETTINGS_FILE: settings_toml(broker, options).encode()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(
            broker.cluster_id, options, broker_name(broker.slot), **{SLOT: str(broker.slot)}
        ),
        "type": "Opaque",
        "data": {name: base64.b64encode(files[name]).decode() for name in sorted(files)},
    }


def settings_toml(broker: BrokerPlan, options: KubernetesOptions) -> str:
    """A broker's settings as TOML, with the addresses and the folder that its pod has."""
    sections = {name: dict(values) for name, values in broker.settings.items()}
    sections["storage"]["dfs"] = DFS_FOLDER
    # The pod's command says where the broker listens for others: the address is known there only.
    sections["listener"].pop("brokers", None)
    sections["listener"] |= {
        "kafka": f"0.0.0.0:{options.kafka_port}",
        "link": f"0.0.0.0:{options.link_port}",
        "metrics": f"0.0.0.0:{options.metrics_port}",
        # The pod's listener is not on loopback and has no TLS, so no password may pass over it.
        "sasl": ["SCRAM-SHA-512"],
    }
    return sections_toml(sections)


def disruption_budget(brokers: int, cluster_id: str, options: KubernetesOptions) -> Manifest:
    """Permits the eviction of one broker at a time, and of none while another is not ready.

    It uses `minAvailable`. With `maxUnavailable` Kubernetes would count the pods that exist, and
    miss a Deployment whose only pod is gone and not created again yet.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(cluster_id, options, BROKERS),
        "spec": {
            "minAvailable": brokers - 1,
            "selector": {"matchLabels": {PART: BROKER}},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def deployment(cluster_id: str, slot: int, replicas: int, options: KubernetesOptions) -> Manifest:
    """The Deployment of one broker, with one pod.

    Each slot has its own, so that the driver decides which broker goes, and in which order.
    """
    labels = {PART: BROKER, SLOT: str(slot)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(cluster_id, options, broker_name(slot), **labels),
        "spec": {
            "replicas": replicas,
            "revisionHistoryLimit": 1,
            "selector": {"matchLabels": labels},
            # A new broker takes over from the old one of its slot, so both at a time are of no use.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "template": {
                "metadata": {
                    "labels": {
                        **labels,
                        MANAGED_BY: MANAGER,
                        CELL: options.cell,
                        CLUSTER: cluster_id,
                    }
                },
                "spec": _pod_spec(options, cluster_id, slot),
            },
        },
    }


def _pod_spec(options: KubernetesOptions, cluster_id: str, slot: int) -> Manifest:
    # Over zones, and over the nodes of a zone: a node that is lost takes few brokers along.
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": label,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {PART: BROKER}},
        }
        for label in (ZONE_LABEL, HOST_LABEL)
    ]
    pod: Manifest = {
        "serviceAccountName": BROKERS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": options.stop_timeout_s,
        "topologySpreadConstraints": spread,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": options.user,
            "runAsGroup": options.user,
            "fsGroup": options.user,
            # Otherwise each start would change the owner of every file on the shared file system.
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container_spec(options, cluster_id)],
        "volumes": [
            {"name": "settings", "secret": {"secretName": broker_name(slot), "defaultMode": 0o440}},
            {"name": DFS, "persistentVolumeClaim": {"claimName": DFS}},
            {"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
    if options.node_selector:
        pod["nodeSelector"] = dict(options.node_selector)
    if options.tolerations:
        pod["tolerations"] = [dict(toleration) for toleration in options.tolerations]
    if options.priority_class:
        pod["priorityClassName"] = options.priority_class
    if options.runtime_class:
        pod["runtimeClassName"] = options.runtime_class
    return pod


def _container_spec(options: KubernetesOptions, cluster_id: str) -> Manifest:
    resources = options.resources
    ports = [
        {"name": name, "containerPort": port, "protocol": "TCP"}
        for name, port in (
            ("kafka", options.kafka_port),
            ("link", options.link_port),
            ("metrics", options.metrics_port),
            ("brokers", options.brokers_port),
        )
    ]
    healthy = {"path": "/healthz", "port": "metrics", "scheme": "HTTP"}
    probe = {"httpGet": healthy, "periodSeconds": PROBE_PERIOD_S, "successThreshold": 1}
    return {
        "name": BROKER,
        "image": options.image,
        "imagePullPolicy": options.image_pull_policy,
        "command": [
            *options.command,
            "--config",
            f"{SETTINGS_FOLDER}/{SETTINGS_FILE}",
            # The address that the broker returns to Kafka clients of the cell, which are the keeper
            # and the control plane.
            f'--set=listener.advertised="$({POD_IP}):{options.kafka_port}"',
            f'--set=listener.brokers="$({POD_IP}):{options.brokers_port}"',
            f'--set=broker.rack="$({ZONE})"',
        ],
        "env": [
            _variable(POD_IP, "status.podIP"),
            # Kubernetes copies it from the node. Where it does not, this is empty.
            _variable(ZONE, f"metadata.labels['{ZONE_LABEL}']"),
        ],
        "ports": ports,
        "resources": {
            "requests": {"cpu": resources.cpu, "memory": resources.memory},
            "limits": {"cpu": resources.cpu_max, "memory": resources.memory_max},
        },
        # There is no liveness probe: a broker that still reads its partitions is not ready, and
        # must not be killed for that. The process in the pod that restarts brokers notices itself
        # when one hangs.
        "readinessProbe": {**probe, "failureThreshold": 2, "timeoutSeconds": 2},
        "startupProbe": {
            **probe,
            "periodSeconds": 1,
            "failureThreshold": options.start_timeout_s,
            "timeoutSeconds": 2,
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "settings", "mountPath": SETTINGS_FOLDER, "readOnly": True},
            {"name": DFS, "mountPath": f"{DFS_FOLDER}/{cluster_id}"},
            {"name": "scratch", "mountPath": SCRATCH_FOLDER},
        ],
    }


def _variable(name: str, field: str) -> Manifest:
    """An environment variable with the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}}
