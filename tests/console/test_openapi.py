"""The committed OpenAPI file is complete, and describes what the code serves."""

import json
from pathlib import Path

import pytest
from django.core.management import call_command
from jsonschema import Draft202012Validator

FILE = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
WRITE = (
    "manage.py spectacular --format openapi-json"
    " | python -m json.tool --indent 2 --no-ensure-ascii - docs/reference/openapi.json"
)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The document generated from the code. A view that cannot be described fails here."""
    file = tmp_path_factory.mktemp("openapi") / "openapi.json"
    call_command("spectacular", "--validate", "--fail-on-warn", format="openapi-json", file=file)
    return json.loads(file.read_text())


@pytest.fixture(scope="module")
def operations(generated):
    """Each operation of the document, with its name in the form `GET /api/v1/alerts`."""
    methods = {"get", "post", "patch", "put", "delete"}
    return [
        (f"{method.upper()} {path}", operation)
        for path, item in generated["paths"].items()
        for method, operation in item.items()
        if method in methods
    ]


def test_the_committed_file_has_not_drifted(generated):
    assert json.loads(FILE.read_text()) == generated, f"write it anew: {WRITE}"


def test_every_operation_says_what_it_does_and_how_it_fails(operations):
    assert operations
    for name, operation in operations:
        assert operation.get("description"), name
        assert any(status.startswith("2") for status in operation["responses"]), name
        assert "400" in operation["responses"], name


def test_every_body_is_typed(operations):
    for name, operation in operations:
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert content["schema"], name


def test_every_name_of_an_operation_is_unique(operations):
    names = [operation["operationId"] for _, operation in operations]
    assert len(set(names)) == len(names)


def contents(operation):
    """Yields the content of an operation's request and of its successful responses."""
    yield "request", operation.get("requestBody", {}).get("content", {})
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            yield status, response.get("content", {})


def test_every_body_has_examples_that_are_what_it_describes(generated, operations):
    """Only `{"valid": true}`, the answer to `validate_only`, needs no example."""
    validated = {"$ref": "#/components/schemas/Validated"}
    for name, operation in operations:
        for which, content in contents(operation):
            described = content.get("application/json", {"schema": validated})
            if described["schema"] == validated:
                continue
            examples = described.get("examples", {})
            assert examples, f"{name} {which}: no example"
            schema = {**described["schema"], "components": generated["components"]}
            for title, example in examples.items():
                errors = list(Draft202012Validator(schema).iter_errors(example["value"]))
                assert not errors, f"{name} {which} {title}: {errors[0].message}"
