"""Makes the plan of a cluster's brokers from its spec: pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brokers.etcd_access import PASSWORD_FILE
from brokers.locations import for_cluster, metadata_location
from brokers.secrets import SUPER_USER, link_secret, metadata_password, super_password
from provisioning.cell.drivers.base import BrokerPlan, ClusterPlan
from provisioning.cell.keeper.kubernetes import KubernetesSettings
from provisioning.cell.keeper.records import Spec
from provisioning.cell.keeper.settings import KeeperSettings

# Each listener takes a free port: clients find brokers through the cluster's status, and brokers
# find each other through its metadata.
ANY_PORT = "127.0.0.1:0"


def cluster_plan(
    spec: Spec,
    settings: KeeperSettings,
    cell_secret: bytes,
    files: Mapping[str, bytes] | None = None,
) -> ClusterPlan:
    """A plan with one broker for each slot of the spec's scale.

    The settings are those of `python -m brokers serve`. A broker gets only secrets that are derived
    from the cell's secret for its own cluster. `files` are placed beside the settings of brokers
    that do not see the cell's files.
    """
    brokers = tuple(
        BrokerPlan(
            spec.cluster_id,
            slot,
            _broker_settings(spec, slot, settings, cell_secret),
            files={**(files or {}), **_metadata_files(spec, settings, cell_secret)},
        )
        for slot in range(spec.scale)
    )
    return ClusterPlan(spec.cluster_id, brokers)


def _broker_settings(
    spec: Spec, slot: int, settings: KeeperSettings, cell_secret: bytes
) -> dict[str, dict[str, object]]:
    cell = settings.cell
    metadata, bucket = _broker_locations(spec, settings)
    own: dict[str, dict[str, object]] = {
        "storage": {
            "dfs": cell.dfs,
            "bucket": bucket,
            "metadata": metadata,
            "cluster": spec.cluster_id,
        },
        "broker": {"node_id": slot},
        "listener": {
            "kafka": ANY_PORT,
            "sasl": ["PLAIN", "SCRAM-SHA-512"],
            # Tenants' clients come through gateways.
            "super_users_only": True,
            "link": ANY_PORT,
            "link_secret": link_secret(cell_secret, spec.cluster_id),
            # Also where there is one broker, which need not end where the cluster gets others.
            "brokers": ANY_PORT,
            "metrics": ANY_PORT,
        },
        "security": {
            "super_users": [f"User:{SUPER_USER}"],
            "users": [
                {"name": SUPER_USER, "password": super_password(cell_secret, spec.cluster_id)}
            ],
            "allow_everyone_if_no_acl_found": False,
        },
    }
    return {**{name: dict(values) for name, values in settings.broker.items()}, **own}


def _metadata_files(spec: Spec, settings: KeeperSettings, cell_secret: bytes) -> dict[str, bytes]:
    """The password file for an etcd in which each cluster has a user; else nothing."""
    location = metadata_location(_broker_locations(spec, settings)[0])
    if isinstance(location, Path) or location.password_file is None:
        return {}
    if location.user != spec.cluster_id or location.password_file.name != PASSWORD_FILE:
        return {}
    return {PASSWORD_FILE: metadata_password(cell_secret, spec.cluster_id).encode()}


def _broker_locations(spec: Spec, settings: KeeperSettings) -> tuple[str, str]:
    """The locations of metadata store and bucket, as a broker of this cluster reaches them."""
    cell, driver = settings.cell, settings.driver
    metadata, bucket = cell.metadata, cell.bucket
    if isinstance(driver, KubernetesSettings):
        metadata = driver.broker_metadata or metadata
        bucket = driver.broker_bucket or bucket
    return for_cluster(metadata, spec.cluster_id), for_cluster(bucket, spec.cluster_id)
