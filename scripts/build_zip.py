"""Write the package as a zip for ``spark-submit --py-files``; same tree, same bytes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rebalance_core.storage.package_zip import write_package  # the package of this tree

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: build_zip.py TARGET.zip")
    count = write_package(Path(sys.argv[1]))
    print(f"{sys.argv[1]}: {count} files")
