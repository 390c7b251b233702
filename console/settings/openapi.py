"""The settings with which drf-spectacular writes the OpenAPI file."""

from __future__ import annotations

from typing import Any

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Freshet",
    "DESCRIPTION": (
        "Managed serverless Kafka. Errors are RFC 9457 problem documents with a stable `code`; "
        "lists are `{items, next_cursor}`; every POST takes an `Idempotency-Key`. A field or a "
        "parameter that an operation does not take is refused by its name (422)."
    ),
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "SORT_OPERATION_PARAMETERS": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "Role": "console.base.accounts.choices.ROLES",
        "AuditActorKind": "console.base.audit.api.serializers.KINDS",
        "AlertKind": "console.alerts.choices.AlertKind.choices",
        "AlertState": "console.alerts.choices.AlertState.choices",
        "IncidentKind": "console.incidents.choices.IncidentKind.choices",
        "IncidentState": "console.incidents.choices.SHOWN_STATES",
        "StaffIncidentState": "console.incidents.choices.IncidentState.choices",
        "LimitRequestState": "console.base.limits.choices.LimitRequestState.choices",
        "OperationState": "provisioning.choices.OperationState.choices",
        "ProjectRole": "console.base.accounts.choices.PROJECT_ROLES",
        "InvitationState": "console.base.accounts.choices.InvitationState.choices",
        "PrincipalType": "console.base.accounts.choices.PrincipalType.choices",
        "CredentialRole": "provisioning.choices.CredentialRole.choices",
        "UsageMeter": "metering.choices.UsageMeter.choices",
        "InvoiceKind": "billing.choices.InvoiceKind.choices",
        "InvoiceState": "billing.choices.SHOWN_STATES",
        "InvoiceLineKind": "billing.choices.LineKind.choices",
        "ReceivableState": "billing.choices.ReceivableState.choices",
        "PaymentAttemptState": "billing.choices.AttemptState.choices",
        "PaymentMethodName": "billing.choices.PaymentMethod.choices",
        "PaidBy": "billing.choices.PAID_BY",
        "EnteredMethod": "console.staff.api.money_serializers.ENTERED_METHODS",
        "PriceUnit": "billing.choices.PriceUnit.choices",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "console.base.common.api.schema.close_requests",
        "console.base.common.api.schema.sort_schema",
        "console.base.common.api.codes.list_codes",
    ],
}
