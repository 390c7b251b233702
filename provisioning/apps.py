"""The application of provisioning."""

from __future__ import annotations

from django.apps import AppConfig


class ProvisioningConfig(AppConfig):
    """Clusters and what is in them."""

    name = "provisioning"
    label = "provisioning"

    def ready(self) -> None:
        """Connects provisioning to the signals and registries of the other applications."""
        from console.base.accounts import signals  # noqa: PLC0415
        from console.base.audit.names import (  # noqa: PLC0415
            names_in,
            register_namer,
            register_target_namer,
        )
        from console.base.common import exports  # noqa: PLC0415
        from console.base.common.actor import ActorKind  # noqa: PLC0415
        from console.base.common.health import register_check  # noqa: PLC0415
        from console.base.common.metrics import register_metrics  # noqa: PLC0415
        from console.base.common.queued import take_turns  # noqa: PLC0415
        from console.base.common.uses import principals_used  # noqa: PLC0415
        from console.base.common.visibility import register_clusters  # noqa: PLC0415
        from provisioning import checks, limits, models, receivers  # noqa: PLC0415
        from provisioning.administration.services import (  # noqa: PLC0415
            announced,
            archive,
            credential_use,
            protocol_changes,
        )
        from provisioning.clusters import metrics  # noqa: PLC0415
        from provisioning.clusters.services.clusters import clusters_of_projects  # noqa: PLC0415
        from provisioning.clusters.services.operations import RECONCILE  # noqa: PLC0415

        uid = "provisioning"
        signals.organization_signed_up.connect(receivers.create_first_cluster, dispatch_uid=uid)
        signals.organization_verified.connect(receivers.follow_account_status, dispatch_uid=uid)
        signals.account_status_changed.connect(receivers.follow_account_status, dispatch_uid=uid)
        signals.traffic_limit_changed.connect(receivers.follow_traffic_limit, dispatch_uid=uid)
        signals.organization_closed.connect(receivers.follow_closing, dispatch_uid=uid)
        signals.organization_taken_over.connect(receivers.end_credentials, dispatch_uid=uid)
        signals.organization_clusters_forfeited.connect(
            receivers.follow_forfeiting, dispatch_uid=uid
        )
        signals.organization_clusters_redeemed.connect(receivers.follow_redeeming, dispatch_uid=uid)
        exports.register_source("topics", archive.archived_topics)
        exports.register_source("acls", archive.archived_acls)
        signals.project_deleting.connect(receivers.keep_clusters, dispatch_uid=uid)
        register_clusters("provisioning", clusters_of_projects)
        take_turns(RECONCILE)
        register_check("cell", checks.check_cell)
        limits.register_limits()
        announced.register_checks()
        principals_used.connect(credential_use.note_credential_uses, dispatch_uid=uid)
        register_metrics("clusters", metrics.cluster_metrics)
        register_metrics("operations", metrics.operation_metrics)
        register_namer(ActorKind.KAFKA, protocol_changes.names_of_principals)
        register_target_namer("cluster", names_in(models.Cluster))
        register_target_namer("credential", names_in(models.Credential))
