"""Chooses for a new cluster its cell, its ports there and its label in the domain."""

from __future__ import annotations

import re

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


def allocate_ports(*, cell: Cell, cluster_id: str, count: int, first_slot: int = 0) -> list[int]:
    """Gives a cluster the lowest free ports of its cell, for slots from `first_slot` on.

    They are the cluster's until it is deleted. Only local mode has plain listeners: elsewhere there
    are none. It waits for other transactions that allocate ports of the cell. Raises `CellFull`.
    """
    if not config().local:
        return []
    _lock_ports(cell)
    port_range, taken = _port_range(), _taken_ports(cell) | config().own_ports
    free = [port for port in port_range if port not in taken][:count]
    if len(free) < count:
        raise CellFull(
            f"All {len(port_range)} ports for Kafka are taken: delete a cluster, or set"
            " `gateway.kafka_ports` (FRESHET_GATEWAY_KAFKA_PORTS) to more."
        )
    _hold_ports(cell, cluster_id, free, first_slot)
    return free


def reallocate_ports(*, cell: Cell, cluster_id: str, former: list[int]) -> list[int]:
    """Gives a restored cluster its former ports where all are free, and else as many others.

    Raises `CellFull`.
    """
    _lock_ports(cell)
    # A cluster that an earlier release deleted still holds its ports.
    release_ports(cluster_id=cluster_id)
    if _taken_ports(cell).isdisjoint(former):
        _hold_ports(cell, cluster_id, former, 0)
        return former
    return allocate_ports(cell=cell, cluster_id=cluster_id, count=len(former))


def release_ports(*, cluster_id: str) -> None:
    """Makes a cluster's ports free again."""
    CellPort.objects.filter(cluster_id=cluster_id).delete()


def _lock_ports(cell: Cell) -> None:
    Cell.objects.select_for_update().get(pk=cell.pk)


def _port_range() -> range:
    gateway = config().gateway
    return range(gateway.kafka_port, gateway.kafka_port + gateway.kafka_ports)


def _taken_ports(cell: Cell) -> set[int]:
    return set(CellPort.objects.filter(cell=cell).values_list("port", flat=True))


def _hold_ports(cell: Cell, cluster_id: str, ports: list[int], first_slot: int) -> None:
    CellPort.objects.bulk_create(
        CellPort(cell=cell, port=port, cluster_id=cluster_id, slot=slot)
        for slot, port in enumerate(ports, start=first_slot)
    )
