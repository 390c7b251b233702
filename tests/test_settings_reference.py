"""The page on settings says what the code says."""

from pathlib import Path

from console.settings.reference import settings_reference

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"


def test_the_page_is_that_of_the_code():
    remedy = "run: python -m console.settings.reference > docs/reference/settings.md"
    assert PAGE.read_text() == settings_reference(), remedy
