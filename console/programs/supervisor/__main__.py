"""`python -m console.programs.supervisor`: what `manage.py up` runs."""

from __future__ import annotations

import sys

from console.programs.supervisor.supervisor import main

if __name__ == "__main__":
    sys.exit(main())
