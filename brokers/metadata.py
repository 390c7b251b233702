"""The metadata of a cell and of its clusters, without a broker.

`CellStore` is the store of a cell: what the control plane wants of its clusters, what the keeper
sees of them, who wants them awake. `CellStore.cluster` is one cluster's own metadata: topics,
configs, ACLs, users. It is the same whether the cluster sleeps or runs: a broker that runs sees a
change within some tens of milliseconds.

All calls may be made from any thread and hold no lock of the interpreter while they wait; a signal
ends them. They raise the errors below `brokers.errors.MetadataError`. After a fork the child opens
the store anew by itself.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from brokers import _core
from brokers.metadata_records import (
    RECORDS,
    Acl,
    BrokerStatus,
    CellNote,
    Change,
    ClusterLimits,
    ClusterRecord,
    ClusterSpec,
    ClusterStatus,
    DeletedTopic,
    LaneRecord,
    LaneState,
    Listing,
    Mechanism,
    OrphanedTopic,
    Partition,
    Phase,
    ProtocolChange,
    Quota,
    QuotaEntity,
    RecordKind,
    Sample,
    SealedEnd,
    SpecState,
    Topic,
    TopicConfig,
    TopicHistory,
    TrafficLimit,
    User,
    WakeRequest,
    history_of,
    lane_of,
    limits_json,
    listing_of,
    note_of,
    quota_of,
    record_json,
    sample_of,
    spec_of,
    status_of,
    stored_record,
    wake_of,
)

__all__ = [
    "Acl",
    "BrokerStatus",
    "CellNote",
    "CellStore",
    "Change",
    "ClusterLimits",
    "ClusterRecord",
    "ClusterSpec",
    "ClusterStatus",
    "ClusterStore",
    "DeletedTopic",
    "LaneRecord",
    "LaneState",
    "Listing",
    "Mechanism",
    "OrphanedTopic",
    "Partition",
    "Phase",
    "ProtocolChange",
    "Quota",
    "QuotaEntity",
    "RecordKind",
    "Sample",
    "SealedEnd",
    "SpecState",
    "Topic",
    "TopicConfig",
    "TopicHistory",
    "TrafficLimit",
    "User",
    "WakeRequest",
]

T = TypeVar("T")


class CellStore:
    """The metadata store of a cell, by its location (`brokers.locations`).

    An SQLite file is for all processes of its machine; it is made at the first call where there is
    none, and its folder must exist. An etcd is for any number of machines.
    """

    def __init__(
        self,
        location: str | Path,
        *,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`around` makes the block that each call runs in, those of `watch` excepted."""
        self.location = str(location)
        self._around = around
        self._lock = threading.Lock()
        self._opened: _core.Metadata | None = None
        self._process = 0
        # Handles of parent processes. Their threads do not exist here, so they are never closed.
        self._inherited: list[_core.Metadata] = []

    def put_spec(self, spec: ClusterSpec) -> int:
        """Writes the specification of a cluster; returns the record's revision.

        Raises `ConflictError` where a newer generation is stored; one of the same generation is
        replaced. Raises `InvalidError`.
        """
        revision: int = self._call("put_spec", spec=record_json(spec))
        return revision

    def spec(self, cluster_id: str) -> ClusterSpec | None:
        """The specification of a cluster."""
        return stored_record(self._call("spec", cluster=cluster_id), spec_of)

    def specs(self) -> Listing[ClusterSpec]:
        """The specifications of all clusters."""
        return listing_of(self._call("specs"), spec_of)

    def remove_spec(self, cluster_id: str) -> bool:
        """Removes specification and wake request, and nothing else; False where there were none."""
        return bool(self._call("remove_spec", cluster=cluster_id))

    def remove_cluster(self, cluster_id: str) -> bool:
        """Removes specification, status, wake request and notes; returns whether there were any.

        The cluster's own metadata is `cluster(...).remove_all()`.
        """
        return bool(self._call("remove_cluster", cluster=cluster_id))

    def put_status(self, cluster_id: str, status: ClusterStatus) -> int:
        """Writes the status of a cluster; returns the record's revision.

        A status that equals the stored one changes nothing.
        """
        revision: int = self._call("put_status", cluster=cluster_id, status=record_json(status))
        return revision

    def status(self, cluster_id: str) -> ClusterStatus | None:
        """The status of a cluster; None where it was never started."""
        return stored_record(self._call("status", cluster=cluster_id), status_of)

    def statuses(self) -> Listing[ClusterStatus]:
        """The status of all clusters."""
        return listing_of(self._call("statuses"), status_of)

    def request_wake(self, cluster_id: str, *, requested_at_ms: int, by: str) -> WakeRequest:
        """Requests a wake; a request that is stored stays. Returns the one that is stored."""
        request = {"requested_at_ms": requested_at_ms, "by": by}
        answer = self._call("request_wake", cluster=cluster_id, request=request)
        return wake_of(answer["record"], answer["revision"])

    def wake(self, cluster_id: str) -> WakeRequest | None:
        """The wake request of a cluster."""
        return stored_record(self._call("wake", cluster=cluster_id), wake_of)

    def wakes(self) -> Listing[WakeRequest]:
        """All wake requests."""
        return listing_of(self._call("wakes"), wake_of)

    def remove_wake(self, cluster_id: str, revision: int) -> bool:
        """Removes the wake request of this revision; False where a later one is stored or none."""
        return bool(self._call("remove_wake", cluster=cluster_id, revision=revision))

    def put_removal(self, cluster_id: str, content: Mapping[str, Any]) -> int:
        """Replaces the note that a cluster is purged; returns its revision.

        Raises `TooLargeError` above 768 KiB of JSON.
        """
        return int(self._call("put_removal", cluster=cluster_id, note=dict(content)))

    def add_removal(self, cluster_id: str, content: Mapping[str, Any]) -> bool:
        """Writes the note that a cluster is purged; False, and nothing, where there is one."""
        return bool(self._call("add_removal", cluster=cluster_id, note=dict(content)))

    def removal(self, cluster_id: str) -> CellNote | None:
        """The note that a cluster is purged."""
        return stored_record(self._call("removal", cluster=cluster_id), note_of)

    def put_health(self, name: str, content: Mapping[str, Any]) -> int:
        """Replaces the note of a name on how the brokers of the cell are; returns its revision.

        Raises `TooLargeError` above 768 KiB of JSON.
        """
        return int(self._call("put_health", name=name, note=dict(content)))

    def health(self, name: str) -> CellNote | None:
        """The note of a name on how the brokers of the cell are."""
        return stored_record(self._call("health", name=name), note_of)

    def samples(self) -> Listing[Sample]:
        """All that an earlier release stored as samples, which this one no longer writes."""
        return listing_of(self._call("samples"), sample_of)

    def remove_sample(self, cluster_id: str) -> bool:
        """Removes what an earlier release stored as a sample; returns whether there was one."""
        return bool(self._call("remove_sample", cluster=cluster_id))

    def watch(
        self, prefix: str | Sequence[str], after_revision: int, timeout_s: float
    ) -> list[Change]:
        """Waits for changes behind a revision; none where `timeout_s` seconds pass first.

        `prefix` names kinds of records, as `"spec/"` or `("spec/", "wake/")`; `""` is all of them.
        Begin behind the revision of a listing and go on behind that of the last change; whoever
        does so misses nothing. Raises `CompactedError` where the history does not reach back that
        far: list, and watch from there.
        """
        prefixes = [prefix] if isinstance(prefix, str) else list(prefix)
        changes = json.loads(self._handle().watch(prefixes, after_revision, timeout_s))
        return [
            Change(
                kind=change["kind"],
                cluster_id=change["cluster"],
                revision=change["revision"],
                record=None
                if change["record"] is None
                else RECORDS[change["kind"]](change["record"], change["revision"]),
            )
            for change in changes
        ]

    def interrupt(self) -> None:
        """Ends the calls of `watch` in which other threads wait: they return no changes."""
        self._handle().interrupt()

    def cluster(
        self, cluster_id: str, broker_configs: Mapping[str, str] | None = None
    ) -> ClusterStore:
        """One cluster's own metadata; nothing is read yet.

        `broker_configs` is what its brokers are given at their start, by Kafka's names: defaults of
        topics follow from it.
        """
        return ClusterStore(self, cluster_id, dict(broker_configs or {}))

    def _call(self, call: str, **arguments: object) -> Any:  # noqa: ANN401 (JSON)
        with self._around():
            return json.loads(self._handle().call(json.dumps({"call": call, **arguments})))

    def _handle(self) -> _core.Metadata:
        with self._lock:
            if self._opened is None or self._process != os.getpid():
                if self._opened is not None:
                    self._inherited.append(self._opened)
                self._opened = _core.Metadata(self.location)
                self._process = os.getpid()
            return self._opened


class ClusterStore:
    """One cluster's own metadata. Made by `CellStore.cluster`.

    Calls that add something take `limits`, to which they are held: where there is no room they
    raise `LimitReachedError`, with `name`, `limit` and `used`, and change nothing. Without `limits`
    they are held to none.
    """

    def __init__(self, cell: CellStore, cluster_id: str, broker_configs: Mapping[str, str]) -> None:
        self.cluster_id = cluster_id
        self._cell = cell
        self._broker_configs = dict(broker_configs)
        self._opened: tuple[_core.Metadata, _core.ClusterMetadata] | None = None

    def create(self, kafka_cluster_id: str | None = None, *, scale: int = 1) -> ClusterRecord:
        """Makes the cluster's record; one that is stored stays as it is.

        `kafka_cluster_id` is 22 characters of URL-safe base64; without it one is made up. Raises
        `ConflictError` where the stored one is another.
        """
        return ClusterRecord(**self._call("create", cluster_id=kafka_cluster_id, scale=scale))

    def record(self) -> ClusterRecord:
        """The cluster's record. Raises `NotFoundError`."""
        return ClusterRecord(**self._call("record"))

    def set_scale(self, scale: int) -> ClusterRecord:
        """Changes how many brokers it has when awake. Raises `NotFoundError`."""
        return ClusterRecord(**self._call("set_scale", scale=scale))

    def topics(self) -> list[Topic]:
        """All topics, sorted by name, in one read of the store."""
        return [Topic(**topic) for topic in self._call("topics")]

    def topic(self, name: str) -> Topic:
        """A topic. Raises `NotFoundError`."""
        return Topic(**self._call("topic", name=name)["topic"])

    def partitions(self, name: str) -> list[Partition]:
        """The partitions of a topic. Raises `NotFoundError`."""
        return [Partition(**facts) for facts in self._call("topic", name=name)["partitions"]]

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
        limits: ClusterLimits | None = None,
    ) -> Topic:
        """Makes a topic, checked as CreateTopics is; None is the cluster's default.

        Nobody leads it at first: a broker that runs takes it (`wait_led`), or the next one does.
        Raises `ExistsError`, `InvalidError` with the field (`name`, `partitions`,
        `replication_factor`, `configs/<name>`), `NotFoundError` where there is no such cluster.
        """
        given = (partitions, replication_factor, configs, limits)
        return self._create_topic(name, *given, validate_only=False)

    def validate_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
        limits: ClusterLimits | None = None,
    ) -> Topic:
        """Checks what `create_topic` checks; returns the topic it would make, with an empty id."""
        given = (partitions, replication_factor, configs, limits)
        return self._create_topic(name, *given, validate_only=True)

    def _create_topic(
        self,
        name: str,
        partitions: int | None,
        replication_factor: int | None,
        configs: Mapping[str, str] | None,
        limits: ClusterLimits | None,
        *,
        validate_only: bool,
    ) -> Topic:
        facts = self._call(
            "create_topic",
            name=name,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=dict(configs or {}),
            validate_only=validate_only,
            limits=limits_json(limits),
        )
        return Topic(**facts)

    def alter_topic_configs(
        self, name: str, changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> Topic:
        """Sets configs of a topic; None goes back to the default. Others stay.

        All of them are changed or none. Raises `NotFoundError`, `InvalidError` with the field
        `configs/<name>`, or `configs` where values do not fit together.
        """
        call = {"name": name, "configs": dict(changes), "validate_only": validate_only}
        return Topic(**self._call("alter_topic_configs", **call))

    def create_partitions(
        self, name: str, partitions: int, *, limits: ClusterLimits | None = None
    ) -> Topic:
        """Raises the number of partitions of a topic to `partitions`.

        Raises `NotFoundError`, `InvalidError` where it would not be more.
        """
        call = {"name": name, "partitions": partitions, "limits": limits_json(limits)}
        return Topic(**self._call("create_partitions", **call))

    def check_topic_room(self, limits: ClusterLimits, *, topics: int, partitions: int) -> None:
        """Checks that so many more topics and partitions fit. Raises `LimitReachedError`."""
        adding = {"topics": topics, "partitions": partitions}
        self._call("check_topic_room", **adding, limits=limits_json(limits))

    def limits(self) -> ClusterLimits:
        """The limits that brokers enforce."""
        return ClusterLimits(**self._call("limits"))

    def set_limits(self, limits: ClusterLimits) -> None:
        """Replaces the limits that brokers enforce; those that run do within moments.

        What exists beyond a limit stays. Raises `NotFoundError` where there is no such cluster.
        """
        self._call("set_limits", record=limits_json(limits))

    def delete_topic(self, name: str, *, limits: ClusterLimits | None = None) -> Topic:
        """Removes a topic, which can be restored for as long as `delete.topic.restorable.ms` says.

        Its records stay for so long and count for nothing. With 0 it is gone for good. With
        `limits`, topics that were deleted earlier are gone for good where all deleted ones together
        are more. Raises `NotFoundError`.
        """
        return Topic(**self._call("delete_topic", name=name, limits=limits_json(limits)))

    def deleted_topics(self) -> list[DeletedTopic]:
        """Topics that can be restored, the last deleted one first."""
        return [DeletedTopic(**topic) for topic in self._call("deleted_topics")]

    def undelete_topic(
        self,
        topic_id: str,
        name: str | None = None,
        *,
        limits: ClusterLimits | None = None,
        validate_only: bool = False,
    ) -> Topic:
        """Brings a deleted topic back with all that it had, under its old name or another one.

        With `validate_only` it returns the topic as it would be, and changes nothing. Raises
        `NotFoundError` where there is none or its time is over, `ExistsError` where the name is
        taken, `InvalidError` with the field `name`.
        """
        arguments = {"id": topic_id, "name": name, "validate_only": validate_only}
        return Topic(**self._call("undelete_topic", **arguments, limits=limits_json(limits)))

    def purge_topic(self, topic_id: str) -> Topic:
        """Removes a deleted or orphaned topic and its records for good. Raises `NotFoundError`."""
        return Topic(**self._call("purge_topic", id=topic_id))

    def orphaned_topics(self) -> list[OrphanedTopic]:
        """Topics that storage has and the metadata lacked when it came back from a backup, by name.

        They are found by the first broker that starts behind the restored metadata, and are kept
        until they are attached or purged.
        """
        return [OrphanedTopic(**topic) for topic in self._call("orphaned_topics")]

    def attach_topic(
        self,
        topic_id: str,
        name: str | None = None,
        *,
        limits: ClusterLimits | None = None,
        validate_only: bool = False,
    ) -> Topic:
        """Makes an orphaned topic one of the cluster's again, with its id and records.

        `validate_only` as in `undelete_topic`. Raises `NotFoundError`, `ExistsError`, and
        `InvalidError` with the field `name`, also where storage does not have the name and none is
        given.
        """
        arguments = {"id": topic_id, "name": name, "validate_only": validate_only}
        return Topic(**self._call("attach_topic", **arguments, limits=limits_json(limits)))

    def quotas(self) -> list[Quota]:
        """All quotas, sorted by entity, in one read of the store."""
        return [quota_of(quota) for quota in self._call("quotas")]

    def set_quota(
        self,
        entity: QuotaEntity,
        values: Mapping[str, float],
        *,
        limits: ClusterLimits | None = None,
    ) -> None:
        """Replaces all quotas of an entity; running brokers apply them at once.

        Raises `InvalidError` with the field: `entity`, `user`, `client-id`, `ip` or the name of a
        value. Raises `NotFoundError` where there is no such cluster.
        """
        call = {"entity": asdict(entity), "values": dict(values)}
        self._call("set_quota", **call, limits=limits_json(limits))

    def remove_quota(self, entity: QuotaEntity) -> bool:
        """Removes the quotas of an entity; returns whether there were any."""
        return bool(self._call("remove_quota", entity=asdict(entity)))

    def changes(self, after: int = 0, limit: int = 500) -> list[ProtocolChange]:
        """Changes over the Kafka protocol behind this `sequence`, in order; at most 1000."""
        changes = self._call("changes", after=after, limit=limit)
        return [ProtocolChange(**change) for change in changes]

    def forget_changes(self, up_to: int) -> int:
        """Drops all changes up to this `sequence`; returns how many there were."""
        forgotten: int = self._call("forget_changes", up_to=up_to)
        return forgotten

    def topic_configs(self, name: str | None = None) -> list[TopicConfig]:
        """Every config of a topic, sorted by name; without a name, of one that sets nothing."""
        return [TopicConfig(**config) for config in self._call("topic_configs", name=name)]

    def topics_history(self) -> list[TopicHistory]:
        """All topics that exist or were deleted, by creation, with what usage needs of them."""
        return [history_of(topic) for topic in self._call("topics_history")]

    def lanes(self) -> list[LaneRecord]:
        """All starts of brokers that are known, in order."""
        return [lane_of(lane) for lane in self._call("lanes")]

    def traffic_limit(self) -> TrafficLimit | None:
        """What clients may produce and fetch; None where that is not limited."""
        limit = self._call("traffic_limit")
        return None if limit is None else TrafficLimit(**limit)

    def set_traffic_limit(self, limit: TrafficLimit | None) -> None:
        """Limits what everybody but the service itself produces and fetches, or lifts the limit.

        It holds within a second and after every start. Raises `NotFoundError` where there is no
        such cluster, `InvalidError` for a reason that is empty or beyond 1024 characters.
        """
        self._call("set_traffic_limit", limit=None if limit is None else asdict(limit))

    def wait_led(self, name: str, timeout_s: float) -> bool:
        """Waits until a live broker leads every partition; False where the time is over first.

        Raises `NotFoundError` where the topic does not exist, or was removed meanwhile.
        """
        with self._cell._around():
            answer = self._handle().call(json.dumps({"call": "wait_led", "name": name}), timeout_s)
        return answer is not None

    def list_acls(self) -> list[Acl]:
        """The access control list."""
        return [Acl(**acl) for acl in self._call("list_acls")]

    def add_acls(self, acls: Iterable[Acl], *, limits: ClusterLimits | None = None) -> None:
        """Adds entries; those that are there stay.

        Raises `InvalidError` with the field `acls/<place>/<name>`, and then adds none.
        """
        entries = [asdict(acl) for acl in acls]
        self._call("add_acls", acls=entries, limits=limits_json(limits))

    def remove_acls(self, acls: Iterable[Acl]) -> None:
        """Removes entries; those that are not there are no error."""
        self._call("remove_acls", acls=[asdict(acl) for acl in acls])

    def list_users(self) -> list[User]:
        """All users with a password, the service's own `__freshet` among them."""
        return [User(**user) for user in self._call("list_users")]

    def set_user(
        self,
        user: str,
        password: str,
        mechanisms: Sequence[Mechanism] = ("SCRAM-SHA-512",),
        *,
        iterations: int | None = None,
        limits: ClusterLimits | None = None,
    ) -> None:
        """Sets the password of a user for all of these mechanisms or, where it fails, for none.

        Only what verifies the password is stored. Costs milliseconds of a core for each mechanism.
        `iterations` are PBKDF2 rounds, 4096 to 16384; without them 4096, as brokers expect. Raises
        `InvalidError` with the field.
        """
        given = {"user": user, "password": password, "mechanisms": list(mechanisms)}
        self._call("set_user", **given, iterations=iterations, limits=limits_json(limits))

    def remove_user(self, user: str) -> bool:
        """Removes a user for all mechanisms; returns whether there was one."""
        return bool(self._call("remove_user", user=user))

    def remove_all(self) -> int:
        """Removes every record of the cluster; returns how many. No broker may run.

        It may stop half-way and be called again.
        """
        removed: int = self._call("remove_all")
        return removed

    def _call(self, call: str, **arguments: object) -> Any:  # noqa: ANN401 (JSON)
        with self._cell._around():
            answer = self._handle().call(json.dumps({"call": call, **arguments}))
        if answer is None:
            message = "a call without a limit has an answer"
            raise AssertionError(message)
        return json.loads(answer)

    def _handle(self) -> _core.ClusterMetadata:
        cell = self._cell._handle()
        opened = self._opened
        if opened is None or opened[0] is not cell:
            opened = (cell, cell.cluster(self.cluster_id, self._broker_configs))
            self._opened = opened
        return opened[1]
