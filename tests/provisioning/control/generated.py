"""A client that a customer's own tool makes of the committed OpenAPI file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"
NAME = "freshet_client"
# Nothing is run over the generated code; files are bytes, and exposition formats are text.
CONFIG = """\
post_hooks: []
content_type_overrides:
  application/zip: application/octet-stream
  application/pdf: application/octet-stream
  application/openmetrics-text: text/plain
"""


def generate_client(folder: Path) -> Path:
    """Makes the package `freshet_client` in a folder; gives where it is.

    Raises `CalledProcessError` for whatever the generator cannot express or warns of.
    """
    config, package = folder / "config.yaml", folder / NAME
    config.write_text(CONFIG)
    generate = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    options = ["--fail-on-warning", "--config", str(config), "--output-path", str(package)]
    subprocess.run([*generate, "--path", str(FILE), *options], check=True, cwd=folder)
    return package
