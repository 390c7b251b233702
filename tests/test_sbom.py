"""The bill of materials is CycloneDX, names every pin, and depends on the pins alone."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.schema._res import BOM_JSON, JSF, SPDX_JSON
from referencing import Registry, Resource

from provisioning.deliverables import sbom
from tests.imports import ROOT


@pytest.fixture(scope="module")
def document():
    return json.loads(sbom.bill_of_materials(ROOT))


@pytest.fixture(scope="module")
def scopes(document):
    return {component["purl"]: component["scope"] for component in document["components"]}


def test_it_follows_the_schema(document):
    schema = json.loads(Path(str(BOM_JSON[SchemaVersion.V1_6])).read_text())
    others = [json.loads(Path(path).read_text()) for path in (SPDX_JSON, JSF)]
    registry = Registry().with_resources(
        (other["$id"], Resource.from_contents(other)) for other in others
    )
    jsonschema.Draft7Validator(schema, registry=registry).validate(document)


def test_the_same_pins_give_the_same_bytes(document):
    assert json.loads(sbom.bill_of_materials(ROOT)) == document
    assert sbom.bill_of_materials(ROOT) == sbom.bill_of_materials(ROOT)


def test_every_pin_is_in_it(scopes):
    crates = re.findall(r'^checksum = "', Path(ROOT, "brokers/core/Cargo.lock").read_text(), re.M)
    packages = json.loads(Path(ROOT, "frontend/package-lock.json").read_text())["packages"]
    counts = {
        kind: sum(url.startswith(f"pkg:{kind}/") for url in scopes)
        for kind in ("cargo", "golang", "maven", "npm", "pypi")
    }
    assert counts["cargo"] == len(crates)
    assert counts["npm"] == len(
        {
            (path.rpartition("node_modules/")[2], package["version"])
            for path, package in packages.items()
            if path
        }
    )
    assert counts["golang"] > 20
    assert counts["maven"] > 5
    pins = set(
        re.findall(r'"([\w.-]+)(?:\[.+?\])?==', Path(ROOT, "pyproject.toml").read_text(), re.M)
    )
    assert counts["pypi"] == len({re.sub(r"[-_.]+", "-", pin).lower() for pin in pins})


def test_what_only_tests_need_is_excluded(scopes):
    def scope(name: str) -> set[str]:
        return {scope for url, scope in scopes.items() if url.startswith(f"pkg:{name}@")}

    assert scope("pypi/django") == {"required"}
    assert scope("pypi/asgiref") == {"required"}  # what Django needs
    assert scope("pypi/pytest") == {"excluded"}
    assert scope("npm/react") == {"required"}
    assert scope("npm/vitest") == {"excluded"}


def test_a_crate_has_its_checksum():
    lock = '[[package]]\nname = "a"\nversion = "1.0.0"\nchecksum = "' + "0" * 64 + '"\n'
    ours = '[[package]]\nname = "freshet-wire"\nversion = "0.1.0"\n'
    (crate,) = sbom.cargo_components(lock + ours)
    assert str(crate.purl) == "pkg:cargo/a@1.0.0"
    assert [digest.content for digest in crate.hashes] == ["0" * 64]
