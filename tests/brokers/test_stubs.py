"""The committed description of the extension is the extension's."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_stub_describes_the_extension(tmp_path):
    # A configuration of its own: the project's would have all of it checked anew.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nfollow_imports = silent\n")
    command = [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", str(config)]
    result = subprocess.run(
        [*command, "brokers._core"],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
