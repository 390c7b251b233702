"""The Kafka traffic of a running cluster that nobody is billed for, by who takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from provisioning.administration.services.running_groups import RunningGroups
from provisioning.clusters.services.brokers import is_serving
from provisioning.clusters.services.observation import observe_cluster
from provisioning.models import Cluster

# The principals that are named.
TAKERS_MAX = 10


@dataclass(frozen=True)
class Taker:
    """What a principal takes: bytes since brokers started."""

    principal: str
    bytes: int


@dataclass(frozen=True)
class UnbilledTraffic:
    """Bytes since brokers started, and who takes most of them; None where no broker says it."""

    bytes: int | None
    principals: Sequence[Taker] = ()


def unbilled_traffic(*, cluster: Cluster) -> UnbilledTraffic:
    """What clients of a cluster sent and were sent and is not billed. It wakes no cluster.

    What the service itself takes is not in it.
    """
    observation = observe_cluster(cluster)
    if not is_serving(observation) or observation.cell is None:
        return UnbilledTraffic(None)
    taken = RunningGroups(cluster, observation.cell).unbilled()
    if taken is None:
        return UnbilledTraffic(None)
    largest = sorted(taken.items(), key=lambda item: (-item[1], item[0]))[:TAKERS_MAX]
    return UnbilledTraffic(sum(taken.values()), [Taker(*item) for item in largest])
