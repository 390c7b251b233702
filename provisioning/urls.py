"""Addresses of provisioning, under `/api/v1/`."""

from __future__ import annotations

from django.urls import re_path

from provisioning.administration.api.acls import AclTemplateView, AclViewSet
from provisioning.administration.api.credentials import CredentialViewSet
from provisioning.administration.api.deleted_topics import DeletedTopicViewSet, OrphanedTopicViewSet
from provisioning.administration.api.first_steps import FirstStepsViewSet
from provisioning.administration.api.groups import GroupViewSet
from provisioning.administration.api.messages import MessageStreamViewSet, MessageViewSet
from provisioning.administration.api.metrics import ClusterMetricsViewSet, MetricsView
from provisioning.administration.api.quotas import QuotaViewSet
from provisioning.administration.api.topics import TopicViewSet
from provisioning.administration.api.unbilled import UnbilledTrafficViewSet
from provisioning.clusters.api.clusters import ClusterResourceViewSet, OperationViewSet, RegionView

CLUSTER = r"^clusters/(?P<id>cl_[a-z2-7]+)"
IN_CLUSTER = r"^clusters/(?P<cluster_id>cl_[a-z2-7]+)"
# Kafka's rule for names of topics.
TOPIC = IN_CLUSTER + r"/topics/(?P<name>[A-Za-z0-9._-]{1,249})"
# Kafka's ids of topics.
TOPIC_ID = r"(?P<topic>[A-Za-z0-9_-]{1,64})"
# Any name without a NUL, which neither librdkafka nor PostgreSQL accepts. A `/` of the name arrives
# here in another form than those of the path: see `console.base.common.paths`.
GROUP = IN_CLUSTER + r"/groups/(?P<group>[^/\x00]+)"

clusters = ClusterResourceViewSet.as_view
urlpatterns = [
    re_path(r"^regions$", RegionView.as_view(), name="region-list"),
    re_path(r"^operations$", OperationViewSet.as_view({"get": "list"}), name="operation-list"),
    re_path(
        r"^operations/(?P<id>op_[a-z2-7]+)$",
        OperationViewSet.as_view({"get": "retrieve"}),
        name="operation-detail",
    ),
    re_path(r"^clusters$", clusters({"get": "list", "post": "create"}), name="cluster-list"),
    re_path(
        rf"{CLUSTER}$",
        clusters({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
        name="cluster-detail",
    ),
    re_path(rf"{CLUSTER}:undelete$", clusters({"post": "undelete"}), name="cluster-undelete"),
    re_path(rf"{CLUSTER}:wake$", clusters({"post": "wake"}), name="cluster-wake"),
    re_path(rf"{CLUSTER}:sleep$", clusters({"post": "sleep"}), name="cluster-sleep"),
    re_path(rf"{CLUSTER}:suspend$", clusters({"post": "suspend"}), name="cluster-suspend"),
    re_path(rf"{CLUSTER}:resume$", clusters({"post": "resume"}), name="cluster-resume"),
    re_path(
        rf"{IN_CLUSTER}/topics$",
        TopicViewSet.as_view({"get": "list", "post": "create"}),
        name="topic-list",
    ),
    re_path(
        rf"{TOPIC}$",
        TopicViewSet.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
        name="topic-detail",
    ),
    re_path(
        rf"{TOPIC}/partitions$",
        TopicViewSet.as_view({"get": "list_partitions", "post": "add_partitions"}),
        name="topic-partitions",
    ),
    re_path(
        rf"{TOPIC}:delete-records$",
        TopicViewSet.as_view({"post": "delete_records"}),
        name="topic-delete-records",
    ),
    re_path(
        rf"{TOPIC}:skip-damaged$",
        TopicViewSet.as_view({"post": "skip_damaged"}),
        name="topic-skip-damaged",
    ),
    re_path(
        rf"{IN_CLUSTER}/deleted-topics$",
        DeletedTopicViewSet.as_view({"get": "list"}),
        name="deleted-topic-list",
    ),
    re_path(
        rf"{IN_CLUSTER}/deleted-topics/{TOPIC_ID}$",
        DeletedTopicViewSet.as_view({"get": "retrieve", "delete": "destroy"}),
        name="deleted-topic-detail",
    ),
    re_path(
        rf"{IN_CLUSTER}/deleted-topics/{TOPIC_ID}:undelete$",
        DeletedTopicViewSet.as_view({"post": "undelete"}),
        name="deleted-topic-undelete",
    ),
    re_path(
        rf"{IN_CLUSTER}/orphaned-topics$",
        OrphanedTopicViewSet.as_view({"get": "list"}),
        name="orphaned-topic-list",
    ),
    re_path(
        rf"{IN_CLUSTER}/orphaned-topics/{TOPIC_ID}:attach$",
        OrphanedTopicViewSet.as_view({"post": "attach"}),
        name="orphaned-topic-attach",
    ),
    re_path(
        rf"{IN_CLUSTER}/quotas$",
        QuotaViewSet.as_view({"get": "list", "put": "update", "delete": "destroy_entity"}),
        name="quota-list",
    ),
    re_path(
        rf"{IN_CLUSTER}/quotas/(?P<id>qta_[a-z2-7]+)$",
        QuotaViewSet.as_view({"get": "retrieve", "delete": "destroy"}),
        name="quota-detail",
    ),
    re_path(
        rf"{TOPIC}/messages$",
        MessageViewSet.as_view({"get": "list", "post": "create"}),
        name="message-list",
    ),
    re_path(
        rf"{TOPIC}/messages/stream$",
        MessageStreamViewSet.as_view({"get": "list"}),
        name="message-stream",
    ),
    re_path(
        rf"{IN_CLUSTER}/credentials$",
        CredentialViewSet.as_view({"get": "list", "post": "create"}),
        name="credential-list",
    ),
    re_path(
        rf"{IN_CLUSTER}/credentials/(?P<id>cred_[a-z2-7]+)$",
        CredentialViewSet.as_view(
            {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
        ),
        name="credential-detail",
    ),
    re_path(
        rf"{IN_CLUSTER}/credentials/(?P<id>cred_[a-z2-7]+):rotate$",
        CredentialViewSet.as_view({"post": "rotate"}),
        name="credential-rotate",
    ),
    re_path(
        rf"{IN_CLUSTER}/acls$",
        AclViewSet.as_view({"get": "list", "post": "create", "delete": "destroy_matching"}),
        name="acl-list",
    ),
    re_path(
        rf"{IN_CLUSTER}/acls:batch$",
        AclViewSet.as_view({"post": "create_batch"}),
        name="acl-batch",
    ),
    re_path(
        rf"{IN_CLUSTER}/acls:apply-template$",
        AclViewSet.as_view({"post": "apply_template"}),
        name="acl-apply-template",
    ),
    re_path(
        rf"{IN_CLUSTER}/acls/(?P<id>acl_[a-z2-7]+)$",
        AclViewSet.as_view({"get": "retrieve", "delete": "destroy"}),
        name="acl-detail",
    ),
    re_path(r"^acl-templates$", AclTemplateView.as_view(), name="acl-template-list"),
    re_path(r"^metrics$", MetricsView.as_view(), name="metrics"),
    re_path(
        rf"{IN_CLUSTER}/metrics$",
        ClusterMetricsViewSet.as_view({"get": "retrieve"}),
        name="cluster-metrics",
    ),
    re_path(
        rf"{IN_CLUSTER}/first-steps$",
        FirstStepsViewSet.as_view({"get": "retrieve"}),
        name="cluster-first-steps",
    ),
    re_path(
        rf"{IN_CLUSTER}/unbilled-traffic$",
        UnbilledTrafficViewSet.as_view({"get": "retrieve"}),
        name="cluster-unbilled-traffic",
    ),
    re_path(rf"{IN_CLUSTER}/groups$", GroupViewSet.as_view({"get": "list"}), name="group-list"),
    re_path(
        rf"{GROUP}$",
        GroupViewSet.as_view({"get": "retrieve", "delete": "destroy"}),
        name="group-detail",
    ),
    re_path(
        rf"{GROUP}/reset-offsets$",
        GroupViewSet.as_view({"post": "reset_offsets"}),
        name="group-reset-offsets",
    ),
]
