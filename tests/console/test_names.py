"""Names are one line of characters that are seen, wherever one is set."""

from collections.abc import Iterator

import pytest
from django.urls import get_resolver
from rest_framework import serializers

from console.base.accounts.models import Organization
from console.base.common.tenancy import organization_scope
from console.base.runtime.texts import is_line
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.walk.resolver import views_of

UNSEEN = {
    "turned": "Acme\u202egnp.exe",
    "line break": "Acme\nBcc: all@example.com",
    "line separator": "Acme\u2028x",
    "vertical tab": "Acme\x0bx",
    "no character": "Acme\ufffex",
    "bell": "Acme\x07x",
}
# They name what there is, or follow Kafka's own rules.
OTHERS = {
    *("CloseSerializer.name", "DeleteQuerySerializer.name"),
    *("TopicCreateSerializer.name", "NewNameSerializer.name"),
    *("AclCreateSerializer.resource_name", "AclQuerySerializer.resource_name"),
}


def name_fields() -> Iterator[tuple[str, serializers.CharField]]:
    """The fields of every body of a request by which a name is set."""
    for view in views_of(get_resolver()):
        for kind in getattr(view, "input_serializers", {}).values():
            serializer = kind()
            fields = getattr(serializer, "fields", {})
            for name, field in fields.items():
                named = name == "name" or name.endswith("_name")
                if named and isinstance(field, serializers.CharField) and not field.read_only:
                    yield f"{kind.__name__}.{name}", field


def test_every_name_that_is_set_is_one_line():
    seen = dict(name_fields())
    assert {"SignUpSerializer.organization_name", "BillingDetailsSerializer.legal_name"} <= set(
        seen
    )
    taken = set()
    for place, field in seen.items():
        for text in UNSEEN.values():
            try:
                field.run_validation(text)
            except serializers.ValidationError:
                continue
            taken.add(place)
    assert taken == OTHERS


@pytest.mark.parametrize("text", UNSEEN.values(), ids=UNSEEN)
def test_an_organization_is_not_named_so(tenant, text):
    client = ApiClient(tenant.key)
    answer = client.request("PATCH", "/organizations/current", {"name": text})
    document = assert_problem(answer, 422, "validation_failed")
    assert [error["pointer"] for error in document["errors"]] == ["/name"]


def test_a_name_of_an_earlier_release_is_still_read(tenant):
    with organization_scope(tenant.id):
        Organization.objects.update(name=UNSEEN["turned"])
    shown = ApiClient(tenant.key).get("/organizations/current")
    assert shown.json()["name"] == UNSEEN["turned"]


@pytest.mark.parametrize("text", ["Acme & Söhne GmbH", "日本電気", "a" * 100, "R2-D2 (test) 🚀"])
def test_names_of_any_script_are_lines(text):
    assert is_line(text)
