"""Each of the twelve complaints is held by tests that there are."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMPLAINTS = tomllib.loads((ROOT / "tests/complaints.toml").read_text())["complaint"]


def test_there_are_twelve():
    assert len({complaint["of"] for complaint in COMPLAINTS}) == len(COMPLAINTS) == 12


@pytest.mark.parametrize("complaint", [pytest.param(one, id=one["of"]) for one in COMPLAINTS])
def test_what_holds_it_is_there(complaint):
    assert complaint["tests"]
    for named in complaint["tests"]:
        file, name = named.split("::")
        text = (ROOT / file).read_text()
        begins = rf"^def {name}\(" if file.endswith(".py") else rf'^ *test\("{re.escape(name)}"'
        assert re.search(begins, text, re.MULTILINE), named
