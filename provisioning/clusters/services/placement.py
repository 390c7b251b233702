"""Chooses for a new cluster its cell, its ports there and its label in the domain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from console.base.common.conf import config
from console.base.common.errors import FieldError
from console.base.common.ids import random_text
from provisioning.errors import CellFull, UnknownRegion
from provisioning.models import Cell, CellPort

HOST_RANDOM_CHARS = 8
# A broker's label is `b<slot>-<host>`, and a label of a domain name has at most 63 characters.
HOST_NAME_CHARS_MAX = 40
# Gateways read a label like this as a broker's, so no cluster may have it.
BROKER_NAME = re.compile(r"b[0-9]+(-|$)")
# So many slots have ports in each cluster, also where it has fewer brokers: clients of a cluster
# that grows up to these know all addresses already.
SLOTS_MIN = 3


def choose_cell(*, region: str | None) -> Cell:
    """The cell for a new cluster in a region; None is the only region. Raises `UnknownRegion`."""
    settings = config().cell
    if region is not None and region != settings.region:
        detail = f"There is no region {region}."
        raise UnknownRegion(detail, errors=[FieldError("/region", "unknown_region", detail)])
    cell, _ = Cell.objects.get_or_create(pk=settings.id, defaults={"region": settings.region})
    return cell


def host_label(name: str) -> str:
    """A cluster's label in the domain: its name's letters and digits, and random characters."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:HOST_NAME_CHARS_MAX].strip("-")
    if not slug or BROKER_NAME.match(slug):
        slug = f"cluster-{slug}".strip("-")
    return f"{slug}-{random_text(HOST_RANDOM_CHARS)}"


def complete_ports(
    *, cell_id: str, cluster_id: str, brokers: int, held: Sequence[int] = ()
) -> list[int]:
    """The ports of a cluster: those that it holds, and the lowest free ones for what lacks.

    The first port is for clients that bootstrap, the others are the slots', also of those without
    a broker. Where the cell has too few free ports for that, one broker does with the first port
    alone, and several have no port for slots without a broker. The ports are the cluster's until
    it is deleted. Only local mode has plain listeners: elsewhere no port is added.

    It waits for other transactions that give ports of the cell away. Raises `CellFull`.
    """
    count_max = 1 + max(SLOTS_MIN, brokers)
    count_min = 1 if brokers == 1 else 1 + brokers
    if not config().local or len(held) >= count_max:
        return list(held)
    _lock_ports(cell_id)
    port_range, taken = _port_range(), _taken_ports(cell_id) | config().own_ports
    free = [port for port in port_range if port not in taken]
    lacking = count_max - len(held)
    if lacking > len(free):
        lacking = max(0, count_min - len(held))
    if lacking > len(free):
        raise CellFull(
            f"Of {len(port_range)} ports for Kafka {len(free)} are free, and the cluster needs"
            f" {lacking} more: delete a cluster, or set `gateway.kafka_ports`"
            " (FRESHET_GATEWAY_KAFKA_PORTS) to more."
        )
    _hold_ports(cell_id, cluster_id, free[:lacking], len(held))
    return [*held, *free[:lacking]]


def reallocate_ports(
    *, cell_id: str, cluster_id: str, brokers: int, former: Sequence[int]
) -> list[int]:
    """The ports of a restored cluster: its former ones where all are free, and else others.

    Of its former ports it gets the first where that one is free, because clients know it. Raises
    `CellFull`.
    """
    _lock_ports(cell_id)
    # A cluster that an earlier release deleted still holds its ports.
    release_ports(cluster_id=cluster_id)
    taken = _taken_ports(cell_id)
    held = former if taken.isdisjoint(former) else [p for p in former[:1] if p not in taken]
    _hold_ports(cell_id, cluster_id, held, 0)
    return complete_ports(cell_id=cell_id, cluster_id=cluster_id, brokers=brokers, held=held)


def release_ports(*, cluster_id: str) -> None:
    """Makes a cluster's ports free again."""
    CellPort.objects.filter(cluster_id=cluster_id).delete()


def _lock_ports(cell_id: str) -> None:
    Cell.objects.select_for_update().get(pk=cell_id)


def _port_range() -> range:
    gateway = config().gateway
    return range(gateway.kafka_port, gateway.kafka_port + gateway.kafka_ports)


def _taken_ports(cell_id: str) -> set[int]:
    return set(CellPort.objects.filter(cell_id=cell_id).values_list("port", flat=True))


def _hold_ports(cell_id: str, cluster_id: str, ports: Iterable[int], first_place: int) -> None:
    CellPort.objects.bulk_create(
        CellPort(cell_id=cell_id, port=port, cluster_id=cluster_id, place=place)
        for place, port in enumerate(ports, start=first_place)
    )
