"""Makes a client from the committed OpenAPI file, with a tool that a customer may use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"
NAME = "freshet_client"
# The generator runs no formatter over the code, and gets the types of answers that are not JSON.
CONFIG = """\
post_hooks: []
content_type_overrides:
  application/zip: application/octet-stream
  application/pdf: application/octet-stream
  application/openmetrics-text: text/plain
"""


def generate_client(folder: Path) -> Path:
    """Makes the package `freshet_client` in a folder; returns its path.

    Raises `CalledProcessError` where the generator cannot express something, or warns.
    """
    config, package = folder / "config.yaml", folder / NAME
    config.write_text(CONFIG)
    generate = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    options = ["--fail-on-warning", "--config", str(config), "--output-path", str(package)]
    subprocess.run([*generate, "--path", str(FILE), *options], check=True, cwd=folder)
    return package
