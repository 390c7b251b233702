"""`python -m spark_usage.jars FOLDER`: fetches the jars that Spark needs for `s3a://` (11 MB) by
Maven.

FOLDER is the one that the setting `usage.spark_jars` names, or Spark's own `jars/`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

POM = Path(__file__).parent / "pom.xml"

EXIT_USAGE = 2


def copy_jars(pom: Path, folder: Path) -> None:
    """Copies the runtime dependencies of a POM into a folder, which Maven makes.

    Raises `CalledProcessError` where Maven fails, and `FileNotFoundError` where there is no Maven.
    """
    subprocess.run(
        [
            "mvn",
            "--batch-mode",
            "--no-transfer-progress",
            f"--file={pom}",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={folder.absolute()}",
        ],
        check=True,
    )


def main(arguments: list[str]) -> int:
    """Fetches the jars; returns the exit status."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m spark_usage.jars FOLDER\n")
        return EXIT_USAGE
    copy_jars(POM, Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
