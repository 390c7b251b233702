"""The roll-up with other settings than its own: `… -m tests.bench.rollup_as SETTINGS ARGUMENT…`.

SETTINGS is JSON: `{"adaptive": bool, "rows_per_partition": int}`.
"""

import json
import sys

from spark_usage import session
from spark_usage.jobs import rollup, runner

if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    session._ALWAYS["spark.sql.adaptive.enabled"] = json.dumps(settings["adaptive"])
    runner.ROWS_PER_PARTITION = settings["rows_per_partition"]
    sys.exit(rollup.run_job(sys.argv[2:]))
