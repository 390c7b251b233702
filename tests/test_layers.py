"""The import contracts of `pyproject.toml` are kept, and each of them can be broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ["console", "provisioning", "metering", "billing", "brokers", "spark_usage"]


def lint_imports(folder):
    """Runs import-linter over the packages in a folder."""
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path):
    """The Python of this checkout, free to be changed."""
    for package in PACKAGES:
        for source in (ROOT / package).rglob("*.py"):
            target = tmp_path / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_contracts_are_kept(copy):
    result = lint_imports(copy)
    assert result.returncode == 0, result.stdout + result.stderr


def test_no_package_has_a_cycle_between_its_parts():
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    # For types alone, as `pyproject.toml` says too.
    for importer in graph.find_matching_modules("**.querysets"):
        for imported in graph.find_modules_directly_imported_by(importer):
            if imported == importer.replace(".querysets", ".models"):
                graph.remove_import(importer=importer, imported=imported)
    packages = sorted(module for module in graph.modules if graph.find_children(module))
    cycles = {
        package: breakers
        for package in packages
        if (breakers := graph.nominate_cycle_breakers(package))
    }
    print(f"{len(packages)} packages, {len(cycles)} with a cycle between their parts")  # noqa: T201
    assert len(packages) > 50
    assert not cycles


# Who would break a contract, and by importing what.
BREAKS = [
    ("console.base.common", "console.base.accounts"),
    ("console.base.audit", "console.base.limits"),
    ("console.base.limits", "console.programs.backup"),
    ("provisioning.clusters", "provisioning.administration"),
    ("provisioning.administration", "provisioning.reconciling"),
    ("provisioning.kafka", "provisioning.cell.keeper"),
    ("provisioning.kafka", "confluent_kafka"),
    ("console.base.common", "confluent_kafka"),
    ("console.base.accounts", "provisioning"),
    ("provisioning", "metering"),
    ("metering", "provisioning"),
    ("provisioning", "billing"),
    ("billing", "console.web"),
    ("console.web", "console.urls"),
    ("console.base.common", "console.web"),
    ("console.base.common", "provisioning"),
    ("console.settings", "console.base.common"),
    ("console.settings", "django"),
    ("console.celery", "console.base.common"),
    ("console.base.accounts", "console.web"),
    ("brokers", "django"),
    ("spark_usage", "django"),
    ("provisioning.cell.keeper", "django"),
    ("provisioning.cell.drivers", "psycopg"),
    ("metering.agent", "django"),
    ("console.base.runtime", "django"),
    ("console.base.outbound", "console.base.common"),
    ("console.base.outbound", "psycopg"),
    ("console.programs.outbound", "django"),
    ("console.programs.outbound", "provisioning"),
    ("console.base.runtime", "console.base.common"),
    ("brokers.settings", "console.settings"),
    ("brokers", "metering.agent"),
    ("brokers", "console.base.common"),
    ("spark_usage", "brokers"),
    ("metering.events", "metering.agent"),
    ("console.programs.stripe_fake", "billing"),
    ("console.programs.stripe_fake", "stripe"),
    ("console.programs.cli", "django"),
    ("console.programs.cli", "console.base.common"),
]


def test_each_contract_can_be_broken(copy):
    expected = set()
    for number, (package, imported) in enumerate(BREAKS):
        if (copy / package.replace(".", "/")).is_dir():
            importer = f"{package}.bad_{number}"
        else:
            importer = package
        path = copy / f"{importer.replace('.', '/')}.py"
        with path.open("a") as file:
            file.write(f"\nimport {imported}\n")
        expected.add(f"{importer} -> {imported} ")
    result = lint_imports(copy)
    assert result.returncode != 0
    missed = [line for line in sorted(expected) if line not in result.stdout]
    assert not missed, result.stdout


@pytest.mark.parametrize("package", ["brokers", "spark_usage"])
def test_the_wire_contract_may_be_seen(copy, package):
    (copy / package / "good.py").write_text('"""Fine."""\n\nimport metering.events\n')
    result = lint_imports(copy)
    assert result.returncode == 0, result.stdout
