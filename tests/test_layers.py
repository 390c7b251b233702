"""The import contracts of `pyproject.toml` are kept, and each of them can be broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("console/common/bad.py", "console.accounts"),
        ("console/accounts/bad.py", "provisioning"),
        ("provisioning/bad.py", "metering"),
        ("metering/bad.py", "provisioning"),
        ("provisioning/bad.py", "billing"),
        ("billing/bad.py", "console.web"),
        ("console/web/bad.py", "console.urls"),
        ("console/common/bad.py", "console.web"),
        ("console/common/bad.py", "provisioning"),
        ("console/settings/bad.py", "console.common"),
        ("console/settings/bad.py", "django.conf"),
        ("console/celery.py", "console.common"),
        ("console/accounts/bad.py", "console.web"),
        ("brokers/bad.py", "django.conf"),
        ("spark_usage/bad.py", "django"),
        ("provisioning/keeper/bad.py", "django.db"),
        ("provisioning/drivers/bad.py", "psycopg"),
        ("metering/agent/bad.py", "django.db"),
        ("brokers/bad.py", "metering.agent"),
        ("brokers/bad.py", "console.common"),
        ("spark_usage/bad.py", "brokers"),
        ("metering/events/bad.py", "metering.agent"),
        ("console/cli/bad.py", "django.conf"),
        ("console/cli/bad.py", "console.common"),
    ],
)
def test_a_broken_contract_is_found(copy, module, imported):
    (copy / module).write_text(f'"""Breaks a contract."""\n\nimport {imported}\n')
    result = lint_imports(copy)
    assert result.returncode != 0
    assert "BROKEN" in result.stdout
    assert f"{module.removesuffix('.py').replace('/', '.')} -> " in result.stdout


@pytest.mark.parametrize("package", ["brokers", "spark_usage"])
def test_the_wire_contract_may_be_seen(copy, package):
    (copy / package / "good.py").write_text('"""Fine."""\n\nimport metering.events\n')
    result = lint_imports(copy)
    assert result.returncode == 0, result.stdout
