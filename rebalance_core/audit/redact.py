"""Client ids, which hold addresses and process ids, replaced by names that tell nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from rebalance_core.audit.case import GroupCase

PREFIX = "client-"
DIGITS = 10
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b")


def pseudonym(client_id: str, salt: str) -> str:
    """The name of a client id; the same on every night that uses the same salt.

    >>> pseudonym("10.0.0.1@7", "s")
    'client-d441ac7e2d'
    """
    return PREFIX + hashlib.sha256((salt + client_id).encode()).hexdigest()[:DIGITS]


def redact_findings(
    rows: Iterable[dict[str, Any]], case: GroupCase, salt: str
) -> list[dict[str, Any]]:
    """Rows of ``findings`` of a group without its client ids and without addresses."""
    ids = {row["client_id"] for row in case.rows("memberships")}
    ids |= {row["client_id"] for row in case.rows("observed_members")}
    ids |= {row["client_id"] for row in case.rows("observed_facts") if row["client_id"]}
    names = {one: pseudonym(one, salt) for one in ids if one}
    longest_first = sorted(names, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first))) if names else None

    def cleaned(text: str) -> str:
        told = pattern.sub(lambda match: names[match[0]], text) if pattern else text
        return _ADDRESS.sub("(address)", told)

    return [
        row
        | {
            "client_id": pseudonym(row["client_id"], salt) if row["client_id"] else None,
            "summary": cleaned(row["summary"]),
            "evidence": {cleaned(k): cleaned(v) for k, v in row["evidence"].items()},
        }
        for row in rows
    ]
