"""The summary of a simulation, for the engineer on call and for a program: one dict, two forms."""

from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_core.cli.printed import duration, place, utc
from rebalance_core.cli.terminal import joined


def summary_facts(
    output: str,
    ledger: Mapping[str, Any],
    rejected: Mapping[str, int],
    rows: Mapping[str, int],
    seconds: float,
    run_on: str,
) -> dict[str, Any]:
    """The `--json` object of a simulation; `render_summary` reads the same.

    Args:
        output: where the ledger is.
        ledger: totals `groups`, `epochs`, `moved`, `orphaned`, `shared`, `failed_starts`,
            `first_ms`, `last_ms` and the list `worst_groups`.
        rejected: bad rows per issue code.
        rows: rows per output table.
        seconds: how long the run took.
        run_on: where it took place, `process` or `spark`.
    """
    return {
        "job": "simulate",
        "status": "OK",
        "exit_code": 0,
        "output": output,
        **ledger,
        "rejected_rows": rows.get("rejected", 0),
        "rejected": dict(rejected),
        "rows": dict(rows),
        "seconds": seconds,
        "run_on": run_on,
    }


def render_summary(facts: Mapping[str, Any]) -> str:
    """What a person reads: how much there is, then the worst groups and what is wrong with each.

    Orphaned and shared queues are those of each group's last epoch: the state now.
    """
    codes = ", ".join(f"{code} {count:,}" for code, count in sorted(facts["rejected"].items()))
    numbers = [
        ("groups", facts["groups"], ""),
        ("epochs", facts["epochs"], ""),
        ("queues moved", facts["moved"], "over the whole time"),
        ("without an owner", facts["orphaned"], "now"),
        ("with several owners", facts["shared"], "now"),
        ("failed starts", facts["failed_starts"], "new owners that cannot begin to pull"),
        ("rejected rows", facts["rejected_rows"], codes),
    ]
    width = max(len(f"{count:,}") for _, count, _ in numbers)
    lines = [
        f"Ledger in {facts['output']} ({duration(facts['seconds'])} {place(facts['run_on'])})",
        f"Changes from {utc(facts['first_ms'])} to {utc(facts['last_ms'])}",
        "",
        *[f"  {name:<20} {count:>{width},}  {note}".rstrip() for name, count, note in numbers],
    ]
    worst = facts["worst_groups"]
    if worst:
        title = "The group" if len(worst) == 1 else f"The {len(worst)} worst groups"
        title = title if facts["groups"] > len(worst) else "Groups, the worst first"
        lines += ["", title, *_table(worst)]
    return joined(lines)


def _table(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    header = ["group", "last change", "orphaned", "shared", "failed", "moved", "what is wrong"]
    clusters = {group["cluster"] for group in groups}
    rows = [header]
    for group in groups:
        name = group["consumer_group"]
        rows.append(
            [
                name if len(clusters) == 1 else f"{group['cluster']}/{name}",
                utc(group["last_ms"]),
                f"{group['orphaned']:,}",
                f"{group['shared']:,}",
                f"{group['failed_starts']:,}",
                f"{group['moved']:,}",
                what_is_wrong(group),
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if 2 <= column <= 5 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def what_is_wrong(group: Mapping[str, Any]) -> str:
    """One sentence on a group's state now; the gravest thing first."""
    orphaned, shared, failed = group["orphaned"], group["shared"], group["failed_starts"]
    parts = []
    if group["status"] == "EMPTY":
        parts.append("no member is left: nobody reads its queues")
    elif group["status"] == "FROZEN":
        parts.append(
            "a topic cannot be allocated (no readable queue, or the strategy throws): members "
            "keep what they held"
        )
    if orphaned and group["status"] != "EMPTY":
        parts.append(f"{_count(orphaned, 'queue')} of {group['queues']:,} nobody reads")
    if shared:
        parts.append(f"{_count(shared, 'queue')} read by several processes at once")
    if failed:
        parts.append(f"{_count(failed, 'start')} failed")
    return "; ".join(parts) or "nothing"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("s" if number != 1 else "")
