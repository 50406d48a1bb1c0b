"""Print the differences between two audits: compare_findings.py BEFORE AFTER [--texts].

Each argument is the folder of an audit, or a folder of such folders.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds

FINDING = ("severity", "rule_id", "consumer_group", "topic", "broker_name", "queue_id", "client_id")
VERDICT = ("consumer_group", "verdict", "reason")


def runs_of(folder: Path) -> dict[str, Path]:
    """Return the runs at or below a folder, by their relative paths."""
    records = sorted(folder.rglob("_run.json"))
    return {str(record.parent.relative_to(folder)): record.parent for record in records}


def rows_of(run: Path, table: str, columns: tuple[str, ...], *, texts: bool) -> Counter[str]:
    """Return the rows of a table as texts, with the findings' texts if wanted."""
    rows = ds.dataset(run / table, format="parquet").to_table().to_pylist()
    wanted = (*columns, "summary") if texts else columns
    return Counter(
        f"{table}: " + " ".join(str(row[name]) for name in wanted if row.get(name) is not None)
        for row in rows
    )


def statements(run: Path, *, texts: bool) -> Counter[str]:
    """Return the verdicts, findings and exit code of a run."""
    record = json.loads((run / "_run.json").read_text("utf-8"))
    rows = rows_of(run, "group_verdicts", VERDICT, texts=False)
    rows += rows_of(run, "findings", FINDING, texts=texts)
    rows[f"exit code: {record['exit_code']}"] += 1
    return rows


def main(words: list[str]) -> int:
    """Print statements of one side only, run by run; return 1 if anything differs."""
    texts = "--texts" in words
    before, after = (runs_of(Path(word)) for word in words if word != "--texts")
    differ = 0
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            print(f"{name}\n  only in {'AFTER' if name in after else 'BEFORE'}")
            differ += 1
            continue
        old, new = (statements(side[name], texts=texts) for side in (before, after))
        lines = [f"  - {line}" for line in sorted((old - new).elements())]
        lines += [f"  + {line}" for line in sorted((new - old).elements())]
        if lines:
            print("\n".join([name, *lines]))
            differ += 1
    print(f"{len(before.keys() | after.keys())} runs, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
