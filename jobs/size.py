"""spark-submit --py-files dist/rebalance_core.zip jobs/size.py --input DIR --output DIR."""

import sys

try:
    from rebalance_core.cli.main import main
except ImportError as error:  # an old Python, or no --py-files: a message without a traceback
    print(f"rebalance: {error}", file=sys.stderr)
    sys.exit(2)

if __name__ == "__main__":
    sys.exit(main("size"))
