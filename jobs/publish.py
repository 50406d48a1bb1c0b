"""spark-submit --py-files dist/rebalance_core.zip jobs/publish.py --run DIR --to DATABASE."""

import sys

from rebalance_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main("publish"))
