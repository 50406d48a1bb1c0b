"""python jobs/explain.py --ledger DIR --group G --queue T/BROKER/ID --at TIME; needs no Spark."""

import sys

from rebalance_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main("explain"))
