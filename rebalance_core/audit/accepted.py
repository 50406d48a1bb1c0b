"""Findings that are known and accepted for a time: a TOML file with reasons and expiry dates.

```toml
[[accepted]]
rule_id = "IDLE_MEMBER"
consumer_group = "audit-*"     # a glob; likewise topic, broker_name and client_id; left out: any
reason = "one spare member on purpose"
expires = 2027-03-31           # the last day on which it holds
```
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from rebalance_core.model.errors import UsageError, did_you_mean

WHERE = ("consumer_group", "topic", "broker_name", "client_id")
"""Fields that say which findings of the rule are meant; globs."""
KEYS = ("rule_id", *WHERE, "reason", "expires")
FIRST_ACCEPTANCE_DAYS = 30
"""How long what ``--write-accepted`` writes is accepted."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One entry; ``globs`` are (field, pattern) pairs."""

    rule_id: str
    globs: tuple[tuple[str, str], ...]
    reason: str
    expires: date

    def covers(self, finding: Mapping[str, Any]) -> bool:
        """True for a row of ``findings`` that this entry means."""
        return finding["rule_id"] == self.rule_id and all(
            fnmatchcase(finding[name] or "", pattern) for name, pattern in self.globs
        )


def accept(finding: dict[str, Any], accepted: Iterable[Acceptance]) -> dict[str, Any]:
    """The finding with the reason for which it is accepted, if it is."""
    reason = next((one.reason for one in accepted if one.covers(finding)), None)
    return finding | {"accepted": reason}


def read_accepted(
    text: str, where: str, rule_ids: Iterable[str], never: Iterable[str], today: date
) -> tuple[tuple[Acceptance, ...], tuple[Acceptance, ...]]:
    """The entries that hold today, and those that expired.

    Args:
        text: the file.
        where: its name, for messages.
        rule_ids: ids there are.
        never: ids that cannot be accepted.
        today: the day of the audit.

    Raises:
        UsageError: names every mistake with its line.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not TOML: {error}") from error
    mistakes = [
        f"{where}: unknown key {name}{did_you_mean(name, ['accepted'])} (valid: [[accepted]])"
        for name in document
        if name != "accepted"
    ]
    lines = [n for n, line in enumerate(text.splitlines(), 1) if line.strip() == "[[accepted]]"]
    entries = document.get("accepted", [])
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise UsageError(f"{where}: write each acceptance as a [[accepted]] table")
    known, unacceptable = set(rule_ids), set(never)
    acceptances = []
    for index, entry in enumerate(entries):
        line = f"{where}:{lines[index]}" if index < len(lines) else f"{where}, entry {index + 1}"
        wrong = list(_mistakes(entry, known, unacceptable))
        mistakes += [f"{line}: {mistake}" for mistake in wrong]
        if not wrong:
            globs = tuple((name, entry[name]) for name in WHERE if name in entry)
            acceptances.append(
                Acceptance(entry["rule_id"], globs, entry["reason"], entry["expires"])
            )
    if mistakes:
        raise UsageError("\n".join(mistakes))
    holding = tuple(one for one in acceptances if one.expires >= today)
    return holding, tuple(one for one in acceptances if one.expires < today)


def _mistakes(entry: Mapping[str, Any], known: set[str], never: set[str]) -> Iterator[str]:
    for name in entry:
        if name not in KEYS:
            yield f"unknown key {name}{did_you_mean(name, KEYS)} (valid keys: {', '.join(KEYS)})"
    rule_id = entry.get("rule_id")
    if not isinstance(rule_id, str):
        yield "rule_id is missing: which rule's findings?"
    elif rule_id in never:
        yield f"{rule_id} cannot be accepted: change what collection.toml expects instead"
    elif rule_id not in known:
        yield f"rule_id = {rule_id!r} is no rule{did_you_mean(rule_id, sorted(known))}"
    for name in WHERE:
        if name in entry and (not isinstance(entry[name], str) or not entry[name]):
            yield f"{name} = {entry[name]!r}: expected a name or a glob"
    if not isinstance(entry.get("reason"), str) or not entry["reason"].strip():
        yield "reason is missing: why is it accepted?"
    expires = entry.get("expires")
    if not isinstance(expires, date) or isinstance(expires, datetime):
        yield f"expires = {expires!r}: expected a day, e.g. 2027-03-31"


def write_accepted(findings: Iterable[Mapping[str, Any]], today: date) -> str:
    """A file that accepts these findings for `FIRST_ACCEPTANCE_DAYS`; reasons are to be filled in.

    One entry for a rule and group; findings on the cluster name their broker or topic.
    """
    expires = today + timedelta(days=FIRST_ACCEPTANCE_DAYS)
    keys = {
        (f["rule_id"], *((name, f[name]) for name in _naming(f) if f[name] is not None))
        for f in findings
    }
    parts = [
        "# Findings of the first run. Give each its reason and its day, or mend and delete it.",
        "# Names are globs: [*] stands for a star in a name.",
    ]
    for rule_id, *where in sorted(keys, key=str):
        parts += ["", "[[accepted]]", f'rule_id = "{rule_id}"']
        parts += [f"{name} = {_toml(_escaped(value))}" for name, value in where]
        parts += ['reason = "there at the first run"', f"expires = {expires.isoformat()}"]
    return "\n".join(parts) + "\n"


def _naming(finding: Mapping[str, Any]) -> tuple[str, ...]:
    return ("consumer_group",) if finding["consumer_group"] else WHERE[1:]


def _escaped(name: str) -> str:
    """The name as a glob that means itself."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _toml(text: str) -> str:
    return json.dumps(text)  # a JSON string of ASCII is a TOML basic string
