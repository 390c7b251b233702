"""How far somebody has come with a new cluster, from what its cell knows.

Of running brokers the ends of partitions and the committed offsets say it. Of a sleeping cluster
the keeper's last sample does, as far as it can: it has no ends of partitions that no group reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioning.administration.services.running_groups import FirstUses, RunningGroups
from provisioning.cell.samples import GROUPS, INTERNAL_TOPICS, TOPICS
from provisioning.choices import SampleData
from provisioning.clusters import sample_data
from provisioning.clusters.services.brokers import is_serving
from provisioning.clusters.services.observation import observe_cluster
from provisioning.clusters.services.samples import newest_sample
from provisioning.models import Cluster


@dataclass(frozen=True)
class FirstSteps:
    """Whether a cluster has a credential, was produced to, and consumed from; None: not known."""

    credential: bool
    produced: bool | None
    consumed: bool | None


def first_steps(*, cluster: Cluster) -> FirstSteps:
    """The first steps with a cluster. It neither wakes the cluster nor reads a record."""
    has_samples = cluster.sample_data != SampleData.NONE
    own = {sample_data.TOPIC: len(sample_data.RECORDS)} if has_samples else {}
    observation = observe_cluster(cluster)
    if is_serving(observation) and observation.cell is not None:
        uses = RunningGroups(cluster, observation.cell).first_uses(own)
    else:
        sample = newest_sample(organization_id=cluster.organization_id, cluster_id=cluster.pk)
        uses = FirstUses(None, None) if sample is None else uses_in_sample(sample.content, own)
    has_credential = cluster.credentials.current().exists()
    return FirstSteps(has_credential, uses.produced, uses.consumed)


def uses_in_sample(content: Mapping[str, Any], own: Mapping[str, int]) -> FirstUses:
    """What a sample tells. `own`: the records that the service itself wrote, by topic. Pure."""
    partitions = [
        partition for group in content.get(GROUPS, ()) for partition in group.get("partitions", ())
    ]
    ends = [(partition["topic"], partition["end"] or 0) for partition in partitions]
    # Bytes in, bytes out and records in, since brokers started.
    counted = [(topic, counts[2]) for topic, counts in content.get(TOPICS, {}).items()]
    produced = any(
        count > own.get(topic, 0)
        for topic, count in (*ends, *counted)
        if topic not in INTERNAL_TOPICS
    )
    consumed = any((partition["committed"] or 0) > 0 for partition in partitions)
    # What was produced before brokers last started is in no sample, unless a group reads it.
    return FirstUses(produced or None, consumed)
