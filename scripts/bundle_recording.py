"""Pack the tests' recording `nightly` for `rebalance demo`; same files, same bytes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rebalance_core.cli.demo import COLLECTION, RECORDING  # the package of this tree
from rebalance_core.storage.package_zip import write_zip

TREE = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TREE / "rebalance_core/bundled" / RECORDING
    print(write_zip(target, TREE / "tests/recordings/data/nightly/collection", COLLECTION), target)
