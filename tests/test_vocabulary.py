"""Names and prose keep to the glossary, which stays short, and no type has another one's name."""

import re
from pathlib import Path, PurePosixPath

import pytest

from tests import vocabulary
from tests.checkout import texts_of
from tests.imports import ROOT

ENTRIES_MAX = 60

# `<crate or package>.<type>` → why both have that name.
DOUBLED: dict[str, str] = {}


@pytest.fixture(scope="module")
def texts():
    return texts_of(ROOT)


def test_the_glossary_is_short_and_sorted_into_parts():
    entries = re.findall(r"^\| \*\*(.+?)\*\*", Path(ROOT, "docs/glossary.md").read_text(), re.M)
    assert 40 <= len(entries) <= ENTRIES_MAX
    assert len(entries) == len(set(entries))


@pytest.mark.parametrize(
    "rule",
    [vocabulary.retired_words, vocabulary.participle_variables],
    ids=lambda rule: rule.__name__,
)
def test_every_file_keeps_to_the_glossary(texts, rule):
    complaints = [c for path, text in texts.items() for c in rule(path, text)]
    assert not complaints, "\n".join(complaints)


def test_no_type_has_the_name_of_another(texts):
    assert vocabulary.doubled_types(texts).keys() == DOUBLED.keys()


@pytest.mark.parametrize(("_path", "name", "reason"), vocabulary.PUBLIC)
def test_every_public_name_is_in_use(texts, _path, name, reason):
    assert reason
    used = [p for p, text in texts.items() if name in text and p.name != "vocabulary.py"]
    assert used, f"{name} can go from the list"


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (vocabulary.retired_words, "a.py", "class HourStanding:"),
        (vocabulary.retired_words, "a.rs", "let estate_of = 1;"),
        (vocabulary.retired_words, "a.md", "Nobody told it."),
        (vocabulary.retired_words, "tests/test_shelf.py", ""),
        (vocabulary.participle_variables, "a.py", "for each in rows: pass"),
        (vocabulary.participle_variables, "a.py", "def f(found): pass"),
        (vocabulary.participle_variables, "a.py", "[x for x, told in rows]"),
        (vocabulary.participle_variables, "a.rs", "let found = 1;"),
        (vocabulary.participle_variables, "a.ts", "rows.map((each) => 1)"),
        (vocabulary.participle_variables, "a.go", "wanted := 1"),
    ],
)
def test_a_broken_rule_is_found(rule, path, text):
    assert list(rule(PurePosixPath(path), text))


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (vocabulary.retired_words, "a.py", "outstanding = useState()  # freshet_estate_unknown"),
        (vocabulary.participle_variables, "a.py", "NOT_FOUND = row.found  # each of them"),
        (vocabulary.participle_variables, "a.rs", "// each\nlet x = record.found;"),
        (vocabulary.participle_variables, "a.ts", 'it.each(rows)("found %s", (row) => row);'),
    ],
)
def test_what_is_allowed_is_not_found(rule, path, text):
    assert list(rule(PurePosixPath(path), text)) == []


def test_a_doubled_type_is_found():
    source = "brokers/core/crates/a/src"
    texts = {
        PurePosixPath(f"{source}/b.rs"): "pub struct State;",
        PurePosixPath(f"{source}/c.rs"): "    enum State {}",
        PurePosixPath("billing/b.py"): "class Row: pass",
        PurePosixPath("billing/c/d.py"): "class Row: pass",
        PurePosixPath("metering/c.py"): "class Row: pass\nclass Command: pass",
    }
    assert vocabulary.doubled_types(texts) == {
        "a.State": [f"{source}/b.rs", f"{source}/c.rs"],
        "billing.Row": ["billing/b.py", "billing/c/d.py"],
    }
