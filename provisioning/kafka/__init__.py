"""The control plane and the keeper as Kafka clients. The public face of this package."""

from __future__ import annotations

from provisioning.kafka.clients import Access, Clients, shared_clients
from provisioning.kafka.connection import CLIENT_ID, SUPER_USER, Connection
from provisioning.kafka.deleting import LowWatermark, delete_records
from provisioning.kafka.errors import (
    GroupActiveError,
    KafkaCallError,
    RefusedError,
    UnavailableError,
    UnknownGroupError,
    UnknownPartitionError,
)
from provisioning.kafka.filters import Filter, FilterError, compile_filter
from provisioning.kafka.groups import (
    Group,
    delete_group,
    describe_group,
    describe_groups,
    list_group_names,
    sample_groups,
)
from provisioning.kafka.messages import Browse, NewRecord, Page, Produced, browse, produce
from provisioning.kafka.records import Record
from provisioning.kafka.reset import PlannedOffset, Target, reset_offsets
from provisioning.kafka.tail import TailBatch, tail

__all__ = [
    "CLIENT_ID",
    "SUPER_USER",
    "Access",
    "Browse",
    "Clients",
    "Connection",
    "Filter",
    "FilterError",
    "Group",
    "GroupActiveError",
    "KafkaCallError",
    "LowWatermark",
    "NewRecord",
    "Page",
    "PlannedOffset",
    "Produced",
    "Record",
    "RefusedError",
    "TailBatch",
    "Target",
    "UnavailableError",
    "UnknownGroupError",
    "UnknownPartitionError",
    "browse",
    "compile_filter",
    "delete_group",
    "delete_records",
    "describe_group",
    "describe_groups",
    "list_group_names",
    "produce",
    "reset_offsets",
    "sample_groups",
    "shared_clients",
    "tail",
]
