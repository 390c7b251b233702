"""What a release is made of: a bill of materials in CycloneDX 1.6 (JSON), from the pins alone.

`python -m provisioning.deliverables.sbom > sbom.json`. The same pins give the same bytes. A
component that only tests and tools need has the scope `excluded`.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]

PIN = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?==([\w.]+)")
# The groups of pyproject.toml that a running service needs.
RUNNING_GROUPS = ("service", "embedded")
MAVEN = {"m": "http://maven.apache.org/POM/4.0.0"}


def python_components(pyproject: str, required: set[str]) -> Iterator[Component]:
    """Every exact pin of `pyproject.toml`; `required`: normalized names of what a service needs."""
    project = tomllib.loads(pyproject)
    pins = list(project["tool"]["uv"]["constraint-dependencies"])
    for group in project["dependency-groups"].values():
        pins += [pin for pin in group if isinstance(pin, str)]
    matches = (PIN.match(pin) for pin in pins)
    for name, version in sorted({match.groups() for match in matches if match}):
        normalized = canonicalize_name(name)
        yield _component("pypi", normalized, version, needed=normalized in required)


def running_packages(pyproject: str) -> set[str]:
    """Normalized names of all that the running groups need, by what is installed here."""
    groups = tomllib.loads(pyproject)["dependency-groups"]
    waiting = [pin for name in RUNNING_GROUPS for pin in groups[name] if isinstance(pin, str)]
    packages: set[str] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        extras = {"extra": ""}, *({"extra": extra} for extra in requirement.extras)
        if name in packages and not requirement.extras:
            continue
        packages.add(name)
        for text in importlib.metadata.requires(name) or ():
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate(extra) for extra in extras):
                waiting.append(text)
    return packages


def cargo_components(lock: str) -> Iterator[Component]:
    """Every crate of `Cargo.lock` but our own, which have no checksum there."""
    for package in tomllib.loads(lock)["package"]:
        if "checksum" in package:
            name, version = package["name"], package["version"]
            digest = HashType(alg=HashAlgorithm.SHA_256, content=package["checksum"])
            yield _component("cargo", name, version, needed=True, digest=digest)


def npm_components(lock: str) -> Iterator[Component]:
    """Every package of `package-lock.json` but the console itself."""
    for path, package in json.loads(lock)["packages"].items():
        if path:
            name = path.rpartition("node_modules/")[2]
            namespace, _, plain = name.rpartition("/")
            yield _component(
                "npm", plain, package["version"], namespace, needed=not package.get("dev", False)
            )


def go_components(mod: str) -> Iterator[Component]:
    """Every module that a `go.mod` requires, the indirect ones too."""
    for path, version in re.findall(
        r"^(?:require )?\s*([\w.-]+\.\w+/\S+) (v\S+)", mod, re.MULTILINE
    ):
        namespace, _, name = path.rpartition("/")
        yield _component("golang", name, version, namespace, needed=True)


def maven_components(pom: str) -> Iterator[Component]:
    """Every dependency of a `pom.xml`, with its properties filled in."""
    project = ElementTree.fromstring(pom)  # noqa: S314 - a file of this checkout
    properties = {
        element.tag.rpartition("}")[2]: element.text or ""
        for element in project.iterfind("m:properties/*", MAVEN)
    }
    for dependency in project.iterfind("m:dependencies/m:dependency", MAVEN):
        group, artifact, version = (
            dependency.findtext(f"m:{part}", "", MAVEN)
            for part in ("groupId", "artifactId", "version")
        )
        version = re.sub(r"\$\{(.+?)\}", lambda match: properties[match.group(1)], version)
        yield _component("maven", artifact, version, group, needed=True)


def bill_of_materials(root: Path) -> str:
    """The document, sorted by package URL."""

    def text(name: str) -> str:
        return (root / name).read_text()

    pyproject = text("pyproject.toml")
    components = [
        *python_components(pyproject, running_packages(pyproject)),
        *cargo_components(text("brokers/core/Cargo.lock")),
        *npm_components(text("frontend/package-lock.json")),
        *go_components(text("provisioning/deliverables/terraform/go.mod")),
        *maven_components(text("spark_usage/pom.xml")),
    ]
    return _document(tomllib.loads(pyproject)["project"]["version"], components)


def _document(version: str, components: Iterable[Component]) -> str:
    by_url = {str(component.purl): component for component in components}
    service = Component(
        name="freshet", version=version, type=ComponentType.APPLICATION, bom_ref="freshet"
    )
    bom = Bom(
        components=by_url.values(),
        metadata=BomMetaData(component=service),
        serial_number=uuid5(NAMESPACE_URL, "\n".join(sorted(by_url))),
    )
    bom.register_dependency(service, by_url.values())
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    del document["metadata"]["timestamp"]  # the same pins give the same bytes
    document["components"].sort(key=lambda component: component["purl"])
    document["dependencies"].sort(key=lambda dependency: dependency["ref"])
    for dependency in document["dependencies"]:
        dependency.get("dependsOn", []).sort()
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _component(
    kind: str,
    name: str,
    version: str,
    namespace: str = "",
    *,
    needed: bool,
    digest: HashType | None = None,
) -> Component:
    url = PackageURL(kind, namespace or None, name, version)
    return Component(
        name=name,
        group=namespace or None,
        version=version,
        type=ComponentType.LIBRARY,
        scope=ComponentScope.REQUIRED if needed else ComponentScope.EXCLUDED,
        hashes=[digest] if digest else [],
        purl=url,
        bom_ref=str(url),
    )


if __name__ == "__main__":
    sys.stdout.write(bill_of_materials(ROOT))
