"""The house rules of `tidy.py` hold for every file here, and each of them can be broken."""

import json
import os
import re
import tomllib
from pathlib import Path, PurePosixPath

import pytest

from tests import tidy
from tests.checkout import texts_of, tracked_files

ROOT = Path(__file__).parent.parent

BANNED_METHODS = {
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::thread::sleep",
    "rand::rng",
    "std::fs::read",
    "std::fs::write",
    "std::fs::rename",
    "std::fs::File::open",
    "std::fs::OpenOptions::new",
    "std::net::TcpListener::bind",
    "std::net::TcpStream::connect",
    "tokio::net::TcpListener::bind",
    "tokio::net::TcpStream::connect",
}


@pytest.fixture(scope="module")
def files():
    """Path from the root → text, for every file that is text."""
    texts = texts_of(ROOT)
    assert PurePosixPath("pyproject.toml") in texts
    return texts


@pytest.mark.parametrize(
    "rule",
    [
        tidy.word_complaints,
        tidy.length_complaints,
        tidy.function_complaints,
        tidy.rust_complaints,
        tidy.go_complaints,
    ],
    ids=lambda rule: rule.__name__,
)
def test_every_file_obeys(files, rule):
    complaints = [c for path, text in files.items() for c in rule(path, text)]
    assert not complaints, "\n".join(complaints)


def test_links_in_documents_resolve(files):
    exists = {str(p) for path in files for p in (path, *path.parents)}
    complaints = [
        c for path, text in files.items() for c in tidy.link_complaints(path, text, exists)
    ]
    assert not complaints, "\n".join(complaints)


def test_every_folder_has_a_readme(files):
    assert tidy.folders_without_readme({str(path) for path in files}) == []


def test_every_go_package_has_a_comment(files):
    assert tidy.packages_without_comment(files) == []


def test_no_file_is_larger_than_a_mebibyte():
    large = [n for n in tracked_files(ROOT) if (ROOT / n).stat().st_size > tidy.BYTES_MAX]
    assert large == []


def test_changelog_has_its_shape(files):
    version = tomllib.loads(files[PurePosixPath("pyproject.toml")])["project"]["version"]
    changelog = files[PurePosixPath("CHANGELOG.md")]
    assert list(tidy.changelog_complaints(changelog, version)) == []


def test_decisions_have_their_shape_and_are_listed(files):
    folder = PurePosixPath("docs/decisions")
    index = files[folder / "README.md"]
    records = [p for p in files if p.parent == folder and p.name != "README.md"]
    complaints = [c for path in records for c in tidy.decision_complaints(path, files[path])]
    complaints += [f"{p} is not listed" for p in records if f"]({p.name})" not in index]
    numbers = sorted(int(path.name[:4]) for path in records)
    assert complaints == []
    assert numbers == list(range(1, len(records) + 1))


def test_clippy_bans_the_real_world(files):
    config = tomllib.loads(files[PurePosixPath("brokers/core/clippy.toml")])
    methods = {entry["path"]: entry["reason"] for entry in config["disallowed-methods"]}
    assert set(methods) >= BANNED_METHODS
    assert all(methods.values())


def test_everything_has_one_version(files):
    project = tomllib.loads(files[PurePosixPath("pyproject.toml")])["project"]["version"]
    crates = tomllib.loads(files[PurePosixPath("brokers/core/Cargo.toml")])
    console = json.loads(files[PurePosixPath("frontend/package.json")])
    overlay = PurePosixPath("provisioning/deliverables/kubernetes/overlays/production")
    assert crates["workspace"]["package"]["version"] == project
    assert console["version"] == project
    assert f"newTag: {project}\n" in files[overlay / "kustomization.yaml"]


def test_every_python_dependency_is_pinned(files):
    config = tomllib.loads(files[PurePosixPath("pyproject.toml")])
    pins = (
        config["build-system"]["requires"]
        + config["project"]["dependencies"]
        + [pin for group in config["dependency-groups"].values() for pin in group]
        + config["tool"]["uv"]["constraint-dependencies"]
    )
    pins = [pin for pin in pins if not isinstance(pin, dict)]  # a group within a group
    assert [pin for pin in pins if not re.fullmatch(r"[\w.\[\]-]+==[\w.]+( ?;.*)?", pin)] == []


def test_npm_locks_name_no_registry(files):
    locks = [path for path in files if path.name == "package-lock.json"]
    resolved = [path for path in locks if '"resolved":' in files[path]]
    assert resolved == []


def test_scripts_are_executable_and_strict(files):
    for path, text in files.items():
        if text.startswith("#!/usr/bin/env bash"):
            assert "set -euo pipefail" in text, path
            assert os.access(ROOT / path, os.X_OK), path


LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 70
LONG_GO_FUNCTION = "func f() {\n" + "\tx()\n" * 69 + "}\n"
PLUGIN = 'import (\n\t"github.com/hashicorp/terraform-plugin-framework/types"\n)\n'


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (tidy.word_complaints, "a.py", "# TO" + "DO: later"),
        (tidy.word_complaints, "a.rs", "//! x\nfn f() { to" + "do!() }"),
        (tidy.word_complaints, "tests/test_a.py", "@pytest.mark.ski" + "p"),
        (tidy.word_complaints, "core/tests/a.rs", "//! x\n#[igno" + "re]"),
        (tidy.word_complaints, "tests/a.py", "time.sle" + "ep(1)"),
        (tidy.word_complaints, "a.toml", "index = 'https://pypi.o" + "rg/simple'"),
        (tidy.word_complaints, "a.md", "see /ro" + "ot/x"),
        (tidy.length_complaints, "a.py", "x = 1\n" * 601),
        (tidy.length_complaints, "tests/a.py", "x = 1\n" * 801),
        (tidy.length_complaints, "a.rs", "// " + "word " * 30),
        (tidy.function_complaints, "a.py", LONG_FUNCTION),
        (tidy.go_complaints, "a.go", LONG_GO_FUNCTION),
        (tidy.go_complaints, "provisioning/deliverables/terraform/internal/api/a.go", PLUGIN),
        (tidy.rust_complaints, "a.rs", "fn f() {}"),
        (tidy.rust_complaints, "a.rs", "//! x\nselect! { a = b => {} }"),
        (tidy.rust_complaints, "a.rs", "//! x\nuse pyo3::prelude::*;"),
    ],
)
def test_a_broken_rule_is_found(rule, path, text):
    assert list(rule(PurePosixPath(path), text))


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (tidy.word_complaints, "a.py", "# the method is done"),
        (tidy.word_complaints, "a.md", "brokers/core/tests/ and ${HOME}/tmp/ are fine"),
        (tidy.length_complaints, "a.py", "x = 1\n" * 600),
        (tidy.length_complaints, "a.rs", "// https://example.org/" + "x" * 100),
        (tidy.function_complaints, "a.py", LONG_FUNCTION.replace("    x = 1\n", "", 1)),
        (tidy.go_complaints, "a.go", LONG_GO_FUNCTION.replace("\tx()\n", "", 1)),
        (tidy.go_complaints, "provisioning/deliverables/terraform/internal/provider/a.go", PLUGIN),
        (tidy.rust_complaints, f"{tidy.BINDING}/src/a.rs", "//! x\nuse pyo3::prelude::*;"),
        (tidy.rust_complaints, "a.rs", "//! x\nselect! {\n    biased;\n    a = b => {}\n}"),
    ],
)
def test_what_is_allowed_is_not_found(rule, path, text):
    assert list(rule(PurePosixPath(path), text)) == []


def test_a_dead_link_is_found():
    page = PurePosixPath("docs/how-to/a.md")
    exists = {"docs/b.md", "docs"}
    assert list(tidy.link_complaints(page, "[b](../b.md#part) [web](https://x.y)", exists)) == []
    assert list(tidy.link_complaints(page, "[c](../c.md)", exists))


def test_a_go_package_without_comment_is_found():
    silent = {PurePosixPath("a/b.go"): "package a\n", PurePosixPath("a/c.go"): "\npackage a\n"}
    assert tidy.packages_without_comment(silent) == ["a"]
    silent[PurePosixPath("a/c.go")] = "// Package a is.\n//\n// More.\npackage a\n"
    assert tidy.packages_without_comment(silent) == []


def test_a_folder_without_readme_is_found():
    files = {"a/b/c.py", "a/README.md", "a/d/__init__.py", "brokers/core/src/lane/mod.rs"}
    assert tidy.folders_without_readme(files) == ["a/b", "brokers"]
    features = {"frontend/README.md", "frontend/src/features/x/api/y.ts"}
    assert tidy.folders_without_readme(features) == ["frontend/src/features"]


RELEASE = "## [0.1.0] - 2026-01-01\n"
CHANGELOG = f"# Changelog\n\n{RELEASE}\n### Added\n\n- One.\n\n### Fixed\n\n- Two.\n"


@pytest.mark.parametrize(
    "text",
    [
        CHANGELOG,
        CHANGELOG.replace(RELEASE, f"## [Unreleased]\n\n### Added\n\n- Three.\n\n{RELEASE}"),
        CHANGELOG + "\n## [0.0.9] - 2025-12-31\n\n### Added\n\n- Zero.\n",
    ],
)
def test_a_well_shaped_changelog_passes(text):
    assert list(tidy.changelog_complaints(text, "0.1.0")) == []


@pytest.mark.parametrize(
    "text",
    [
        CHANGELOG.replace("# Changelog", "# Changes", 1),
        CHANGELOG.replace("0.1.0", "0.2.0"),
        CHANGELOG + "\n## [0.2.0] - 2026-02-01\n",
        CHANGELOG + "\n## [Unreleased]\n",
        CHANGELOG.replace("[0.1.0] - 2026-01-01", "0.1.0 (2026-01-01)"),
        CHANGELOG.replace("## [0.1.0]", "## Unreleased\n\n## [0.1.0]"),
        CHANGELOG.replace("### Fixed", "### Mended"),
        CHANGELOG.replace("### Fixed", "### Added"),
        CHANGELOG.replace("### Added", "### Security"),
        CHANGELOG.replace("### Added\n", ""),
        CHANGELOG.replace("- One.", "- without an end"),
        CHANGELOG.replace("- One.", f"- {'long ' * 20}."),
    ],
)
def test_a_misshapen_changelog_is_noticed(text):
    assert list(tidy.changelog_complaints(text, "0.1.0"))
