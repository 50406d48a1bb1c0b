"""spark-submit --py-files dist/rebalance_core.zip jobs/history.py --runs DIR --output DIR."""

import sys

from rebalance_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main("history"))
