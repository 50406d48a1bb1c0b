"""The summary of an ingest, for a person and for a program: one dict, two forms."""

from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_core.cli.printed import duration, place
from rebalance_core.cli.terminal import joined

WORST_FILES = 5


def ingest_facts(
    output: str,
    files: Sequence[Mapping[str, Any]],
    rows: Mapping[str, int],
    rejected: Mapping[str, int],
    findings: Mapping[str, int],
    seconds: float,
    run_on: str,
) -> dict[str, Any]:
    """The `--json` object of an ingest; `render_ingest` reads the same.

    Args:
        output: where the tables are.
        files: each file with its lines and the share that was understood.
        rows: rows per output table.
        rejected: rejected lines and files per code.
        findings: findings per rule.
        seconds: how long the run took.
        run_on: where it took place, `process` or `spark`.
    """
    lines = sum(one["lines"] for one in files)
    understood = sum(one["understood"] for one in files)
    worst = sorted(
        (one for one in files if one["understood"] < one["lines"]),
        key=lambda one: (one["share_understood"], one["name"]),
    )
    return {
        "job": "ingest",
        "status": "OK",
        "exit_code": 0,
        "output": output,
        "files": len(files),
        "lines": lines,
        "share_understood": round(understood / lines, 4) if lines else None,
        "least_understood": [
            {name: one[name] for name in ("name", "lines", "share_understood")}
            for one in worst[:WORST_FILES]
        ],
        "rejected_rows": rows.get("rejected", 0),
        "rejected": dict(rejected),
        "findings": dict(findings),
        "rows": dict(rows),
        "seconds": seconds,
        "run_on": run_on,
    }


def render_ingest(facts: Mapping[str, Any]) -> str:
    """What a person reads: the tables, how much was understood, what was not."""
    share = facts["share_understood"]
    shown = "nothing to read" if share is None else f"{share:.2%} of {facts['lines']:,} lines"
    width = max(len(f"{count:,}") for count in facts["rows"].values())
    lines = [
        f"Tables in {facts['output']} ({duration(facts['seconds'])} {place(facts['run_on'])})",
        f"Understood: {shown}, {facts['files']:,} files",
        "",
        *[f"  {name:<20} {count:>{width},}" for name, count in facts["rows"].items()],
    ]
    for title, counts in (("rejected", facts["rejected"]), ("findings", facts["findings"])):
        if counts:
            by_code = ", ".join(f"{code} {count:,}" for code, count in sorted(counts.items()))
            lines += ["", f"{title}: {by_code}"]
    if facts["least_understood"]:
        lines += ["", "least understood"]
        lines += [
            f"  {one['share_understood']:>7.2%}  {one['lines']:>9,} lines  {one['name']}"
            for one in facts["least_understood"]
        ]
    return joined(lines)
