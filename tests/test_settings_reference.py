"""The pages on settings say what the code says."""

from pathlib import Path

from console.settings.reference import settings_reference
from metering.agent.reference import agent_reference

AGENT_PAGE = Path(__file__).parent.parent / "docs" / "reference" / "agent-settings.md"
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"


def test_the_page_is_that_of_the_code():
    remedy = "run: python -m console.settings.reference > docs/reference/settings.md"
    assert PAGE.read_text() == settings_reference(), remedy


def test_the_agents_page_is_that_of_the_code():
    remedy = "run: python -m metering.agent.reference > docs/reference/agent-settings.md"
    assert AGENT_PAGE.read_text() == agent_reference(), remedy
