"""The places of pods: a CSV file that lists pods, their nodes and zones."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COLUMNS = ("pod", "node", "zone")

Places = tuple[tuple[str, str, str], ...]
"""(pod, node, zone); the pod is the prefix of client ids (its address or name), or a broker's
name.
"""


def read_places(value: Any) -> Places:
    """Read the file that ``places`` names, or raise ValueError with the valid form."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected the name of a CSV file with the columns pod, node, zone")
    try:
        text = Path(value).read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot be read: {error}") from None
    return _places(text.splitlines())


def _places(lines: Iterable[str]) -> Places:
    rows = csv.DictReader(lines)
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise ValueError(f"has no column {', '.join(missing)}; expected pod, node, zone")
    places: dict[str, tuple[str, str, str]] = {}
    for row in rows:
        pod, node, zone = ((row[name] or "").strip() for name in COLUMNS)
        if not pod:
            raise ValueError(f"line {rows.line_num} names no pod")
        if places.setdefault(pod, (pod, node, zone)) != (pod, node, zone):
            raise ValueError(f"line {rows.line_num} places {pod} a second time")
    return tuple(places.values())
