"""`python -m tests.kubernetes.image`: builds the image as an archive for containerd."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.kubernetes.image.build import CACHE, build


def main() -> int:
    """Builds the image, and prints the path of its archive."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.kubernetes.image",
        description="Makes Freshet's image from this checkout, without a registry.",
    )
    parser.add_argument("--spark", action="store_true", help="with Spark and Java")
    parser.add_argument(
        "--embedded", action="store_true", help="with the embedded PostgreSQL and Redis"
    )
    parser.add_argument("--output", type=Path, help=f"an archive (default: one in {CACHE.name})")
    given = parser.parse_args()
    image = build(spark=given.spark, embedded=given.embedded, output=given.output)
    sys.stdout.write(f"{image.name} {image.archive}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
