"""The Kafka client of the control plane: the public names of this package."""

from __future__ import annotations

from provisioning.kafka.access import Access
from provisioning.kafka.clients import Clients, shared_clients
from provisioning.kafka.connection import CLIENT_ID, SUPER_USER, Connection
from provisioning.kafka.damage import judge, next_head
from provisioning.kafka.deleting import delete_records
from provisioning.kafka.effective import wait_acls, wait_topic, wait_user
from provisioning.kafka.errors import (
    BusyError,
    GroupActiveError,
    KafkaCallError,
    NotReadyError,
    RefusedError,
    ThrottledError,
    UnavailableError,
    UndecodableError,
    UnknownGroupError,
    UnknownPartitionError,
)
from provisioning.kafka.filters import FilterError, compile_filter
from provisioning.kafka.groups import (
    delete_group,
    describe_group,
    describe_groups,
    list_group_names,
)
from provisioning.kafka.offsets import end_offset
from provisioning.kafka.pages import browse
from provisioning.kafka.producing import produce
from provisioning.kafka.reset import reset_offsets
from provisioning.kafka.shapes import (
    BatchHead,
    Browse,
    Damaged,
    Group,
    LowWatermark,
    NewRecord,
    Page,
    PlannedOffset,
    Produced,
    Record,
    TailBatch,
    Target,
)
from provisioning.kafka.tail import tail

__all__ = [
    "CLIENT_ID",
    "SUPER_USER",
    "Access",
    "BatchHead",
    "Browse",
    "BusyError",
    "Clients",
    "Connection",
    "Damaged",
    "FilterError",
    "Group",
    "GroupActiveError",
    "KafkaCallError",
    "LowWatermark",
    "NewRecord",
    "NotReadyError",
    "Page",
    "PlannedOffset",
    "Produced",
    "Record",
    "RefusedError",
    "TailBatch",
    "Target",
    "ThrottledError",
    "UnavailableError",
    "UndecodableError",
    "UnknownGroupError",
    "UnknownPartitionError",
    "browse",
    "compile_filter",
    "delete_group",
    "delete_records",
    "describe_group",
    "describe_groups",
    "end_offset",
    "judge",
    "list_group_names",
    "next_head",
    "produce",
    "reset_offsets",
    "shared_clients",
    "tail",
    "wait_acls",
    "wait_topic",
    "wait_user",
]
