"""Print how long two runs took, and whether they wrote the same: compare_runs.py FOLDER FOLDER."""

import json
import sys
from pathlib import Path


def main(folders: list[str]) -> int:
    """Compare the records of two runs; return 1 if any table differs."""
    runs = [json.loads((Path(folder) / "_run.json").read_text("utf-8")) for folder in folders]
    for folder, run in zip(folders, runs, strict=True):
        print(f"  {folder:<16} {run['run_on']:<8} {run['seconds']:6.1f} s")
    first, second = (run["outputs"] for run in runs)
    differ = sorted(name for name in first if first[name] != second.get(name))
    if differ:
        print(f"  rows or digests differ: {', '.join(differ)}")
        return 1
    print(f"  rows and digests of all {len(first)} tables agree")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
