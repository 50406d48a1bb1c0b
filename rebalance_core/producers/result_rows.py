"""A client's rows in order, and their issues."""

import re
from collections.abc import Collection, Sequence
from typing import Any

Row = dict[str, Any]
Issue = dict[str, str]

UNKNOWN_BROKER = "UNKNOWN_BROKER"
TIME_WENT_BACK = "TIME_WENT_BACK"
_LINE = re.compile(r"^(.*):([0-9]+)$")
_CONTENT = ("event_ms", "topic", "broker_name", "latency_ms", "status")


def checked_rows(
    rows: Sequence[Row], brokers: Collection[str] | None
) -> tuple[list[Row], list[tuple[Row, list[Issue]]]]:
    """Return the good rows in chronological order, and the bad ones with their issues.

    In the line order of a file, no event may be earlier than the previous one; rows without line
    numbers (Parquet) have no such order and are sorted.

    Args:
        rows: The rows of one client, with ``_source``.
        brokers: The brokers of the cluster; None: unknown.
    """
    good: list[tuple[tuple[Any, ...], Row]] = []
    bad: list[tuple[Row, list[Issue]]] = []
    latest: dict[str, int] = {}
    for file, line, row in sorted((_place(row) for row in rows), key=_file_order):
        issues = []
        if brokers is not None and row["broker_name"] not in brokers:
            names = ", ".join(sorted(brokers)) or "none"
            message = f"broker_name is '{row['broker_name']}'; brokers of cluster_events: {names}"
            issues.append({"code": UNKNOWN_BROKER, "message": message})
        if line is not None:
            before = latest.get(file, row["event_ms"])
            if row["event_ms"] < before:
                message = f"event_ms is {row['event_ms']}, before the {before} of a line above"
                issues.append({"code": TIME_WENT_BACK, "message": message})
            else:
                latest[file] = row["event_ms"]
        if issues:
            bad.append((row, issues))
        else:
            good.append(((row["event_ms"], file, line or 0, _content(row)), row))
    return [row for _, row in sorted(good, key=lambda pair: pair[0])], bad


def _place(row: Row) -> tuple[str, int | None, Row]:
    match = _LINE.match(row.get("_source") or "")
    return (match[1], int(match[2]), row) if match else ("", None, row)


def _file_order(place: tuple[str, int | None, Row]) -> tuple[str, int, tuple[Any, ...]]:
    return place[0], place[1] or 0, _content(place[2])


def _content(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _CONTENT)
