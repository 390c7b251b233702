"""The engine's crates are its layers: none is long, and no top modules of one go in a circle."""

from pathlib import Path

import pytest

from tests import crates
from tests.checkout import texts_of

ROOT = Path(__file__).parent.parent
# Crates that may still have cycles. It only gets shorter.
NOT_YET: frozenset[str] = frozenset()


@pytest.fixture(scope="module")
def sources():
    """Path from the root → text, for every Rust file of the engine."""
    return {
        path: text
        for path, text in texts_of(ROOT).items()
        if path.suffix == ".rs" and path.is_relative_to(crates.ENGINE)
    }


def test_no_crate_has_cycles_between_its_top_modules(sources):
    groups_of_crates = {name: crates.cycles(nodes) for name, nodes in crates.edges(sources).items()}
    for name, groups in sorted(groups_of_crates.items()):
        print(f"{name}: {len(groups)} cycles {groups or ''}")  # noqa: T201
    assert {"wire", "storage", "broker", "python"} <= groups_of_crates.keys()
    assert {name for name, groups in groups_of_crates.items() if groups} == NOT_YET


def test_no_crate_is_long(sources):
    counts = crates.count_lines(sources)
    for name, count in sorted(counts.items()):
        print(f"{name}: {count} lines")  # noqa: T201
    assert {n: c for n, c in counts.items() if c > crates.LINES_MAX} == {}


CIRCLE = {
    "src/lib.rs": "pub mod a;\npub mod b;\npub mod c;\npub use c::{Deep, Other};\n",
    "src/a/mod.rs": "use crate::{b::{Two, One}, wrong};\n",
    "src/b.rs": "use super::Deep;\n// use crate::a::NotThis;\n",
    "src/c/d.rs": "use super::e;\nuse super::super::a::Far;\n",
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [["a", "b", "c"]]),
        ({"src/b.rs": "#[cfg(test)]\nmod tests {\n    use crate::a::X;\n}\n"}, []),
        ({"src/c/d.rs": "use super::a::Near;\nuse freshet_world::env;\n"}, []),
        ({"src/c/d.rs": "", "src/c/tests.rs": "use crate::a::X;\n"}, []),
    ],
)
def test_a_cycle_is_found(changes, expected):
    folder = crates.ENGINE / "crates/x"
    files = {folder / name: text for name, text in (CIRCLE | changes).items()}
    assert crates.cycles(crates.edges(files)["x"]) == expected


def test_lines_of_tests_do_not_count():
    text = "fn a() {}\n#[cfg(test)]\nmod tests {\n}\n"
    folder = crates.ENGINE / "crates/x/src"
    files = {folder / "lib.rs": text, folder / "tests.rs": text, folder / "b_tests.rs": text}
    assert crates.count_lines(files) == {"x": 1}
