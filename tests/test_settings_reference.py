"""The pages on settings say what the code says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from console.settings.reference import settings_reference
from metering.agent.reference import agent_reference
from provisioning.cell.keeper.reference import keeper_reference

PAGES = Path(__file__).parent.parent / "docs" / "reference"


@pytest.mark.parametrize(
    ("name", "module", "make"),
    [
        ("settings.md", "console.settings.reference", settings_reference),
        ("agent-settings.md", "metering.agent.reference", agent_reference),
        ("keeper-settings.md", "provisioning.cell.keeper.reference", keeper_reference),
    ],
)
def test_a_page_is_that_of_the_code(name: str, module: str, make: Callable[[], str]):
    remedy = f"run: python -m {module} > docs/reference/{name}"
    assert (PAGES / name).read_text() == make(), remedy
