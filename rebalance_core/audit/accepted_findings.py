"""Reads and writes the TOML file of temporarily accepted findings, with reasons and expiry
dates.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict, TypeVar, cast

from rebalance_core.contracts.settings_file import toml_document
from rebalance_core.model.errors import UsageError, did_you_mean, unknown_keys

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsBegun
from rebalance_core.audit.known_issues import TomlTable

Named = Literal["consumer_group", "topic", "broker_name", "client_id"]


WHERE: tuple[Named, ...] = ("consumer_group", "topic", "broker_name", "client_id")
"""Fields that select the rule's findings, as globs."""


class _Entry(TypedDict):
    """A valid table, as written."""

    rule_id: str
    consumer_group: NotRequired[str]
    topic: NotRequired[str]
    broker_name: NotRequired[str]
    client_id: NotRequired[str]
    reason: str
    expires: NotRequired[date]
    snooze_until: NotRequired[date]
    ticket: NotRequired[str]


KEYS = tuple(_Entry.__annotations__)


SNOOZED_UNTIL = "snoozed until "
"""The prefix of ``accepted`` for entries with ``snooze_until``."""


FIRST_ACCEPTANCE_DAYS = 30
"""How long an entry written by ``--write-accepted`` is valid."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """An entry; ``globs`` are (field, pattern) pairs."""

    rule_id: str
    globs: tuple[tuple[Named, str], ...]
    reason: str
    expires: date
    ticket: str = ""
    snoozed: bool = False
    """Whether ``expires`` was written as ``snooze_until``, which means that the cause is to be
    fixed by then.
    """

    @property
    def text(self) -> str:
        """The column ``accepted`` of the findings it covers."""
        ticket = f" ({self.ticket})" if self.ticket else ""
        until = f"{SNOOZED_UNTIL}{self.expires}: " if self.snoozed else ""
        return f"{until}{self.reason}{ticket}"

    def covers(self, finding: FindingsBegun) -> bool:
        """Return True if this entry covers the row of ``findings``."""
        return finding["rule_id"] == self.rule_id and all(
            fnmatchcase(finding[name] or "", pattern) for name, pattern in self.globs
        )


Found = TypeVar("Found", bound="FindingsBegun")


def accept(finding: Found, accepted: Iterable[Acceptance]) -> Found:
    """Return the finding, with the reason for its acceptance if an entry covers it."""
    reason = next((entry.text for entry in accepted if entry.covers(finding)), None)
    shown = finding.copy()
    shown["accepted"] = reason
    return shown


def read_accepted(
    text: str, where: str, rule_ids: Iterable[str], never: Iterable[str], today: date
) -> tuple[tuple[Acceptance, ...], tuple[Acceptance, ...]]:
    """Return the entries that are valid today and those that have expired.

    Args:
        text: the file.
        where: its name, for messages.
        rule_ids: the existing ids.
        never: ids that cannot be accepted.
        today: the day of the audit.

    Raises:
        UsageError: the file has mistakes; the message lists each with its line.
    """
    entries, mistakes = toml_entries(text, where, "accepted", "acceptance")
    valid, unacceptable = set(rule_ids), set(never)
    acceptances = []
    for line, table in entries:
        wrong = list(_accepted_mistakes(table, valid, unacceptable))
        mistakes += [f"{line}: {mistake}" for mistake in wrong]
        if not wrong:
            entry = cast("_Entry", table)
            globs = tuple((name, entry[name]) for name in WHERE if name in entry)
            snoozed = "snooze_until" in entry
            until = entry["snooze_until" if snoozed else "expires"]
            ticket = entry.get("ticket", "")
            acceptances.append(
                Acceptance(entry["rule_id"], globs, entry["reason"], until, ticket, snoozed)
            )
    if mistakes:
        raise UsageError("\n".join(mistakes))
    holding = tuple(acceptance for acceptance in acceptances if acceptance.expires >= today)
    return holding, tuple(acceptance for acceptance in acceptances if acceptance.expires < today)


def toml_entries(
    text: str, where: str, name: str, kind: str, *, beside: Sequence[str] = ()
) -> tuple[list[tuple[str, TomlTable]], list[str]]:
    """Return a file's ``[[name]]`` tables, each with its position, and the mistakes in the file.

    Args:
        text: the file.
        where: its name, for messages.
        name: the name of the tables.
        kind: the name of what a table describes, for messages.
        beside: other keys that the file may contain.

    Raises:
        UsageError: the text is not TOML, or the key is not a list of tables.
    """
    document = toml_document(text, where)
    unknown = unknown_keys(document, [name, *beside], valid="valid tables")
    mistakes = [f"{where}: {text}" for _, text in unknown]
    entries = document.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{where}: write each {kind} as a table [[{name}]]")
    lines = [n for n, line in enumerate(text.splitlines(), 1) if line.strip() == f"[[{name}]]"]
    places = [f"{where}:{line}" for line in lines]
    places += [f"{where}, entry {number}" for number in range(len(lines) + 1, len(entries) + 1)]
    return list(zip(places, entries, strict=False)), mistakes


def _accepted_mistakes(entry: TomlTable, valid: set[str], never: set[str]) -> Iterator[str]:
    yield from (text for _, text in unknown_keys(entry, KEYS))
    rule_id = entry.get("rule_id")
    if not isinstance(rule_id, str):
        yield "rule_id is missing: name the rule whose findings are accepted"
    elif rule_id in never:
        yield f"{rule_id} cannot be accepted: change what collection.toml expects instead"
    elif rule_id not in valid:
        yield f"rule_id = {rule_id!r} is no rule{did_you_mean(rule_id, sorted(valid))}"
    for name in WHERE:
        if name in entry and (not isinstance(entry[name], str) or not entry[name]):
            yield f"{name} = {entry[name]!r}: expected a name or a glob"
    reason, ticket = entry.get("reason"), entry.get("ticket", "none")
    if not isinstance(reason, str) or not reason.strip():
        yield "reason is missing: state why the finding is accepted"
    if not isinstance(ticket, str) or not ticket.strip():
        yield f"ticket = {ticket!r}: expected a ticket's name"
    if "expires" in entry and "snooze_until" in entry:
        yield "expires and snooze_until exclude each other"
        return
    key = "snooze_until" if "snooze_until" in entry else "expires"
    until = entry.get(key)
    if not isinstance(until, date) or isinstance(until, datetime):
        yield f"{key} = {until!r}: expected a day, e.g. 2027-03-31"


class ToAccept(TypedDict):
    """The names that an acceptance may refer to."""

    rule_id: str
    consumer_group: str | None
    topic: str | None
    broker_name: str | None
    client_id: str | None


def write_accepted(findings: Iterable[ToAccept], today: date) -> str:
    """Return a file that accepts these findings for `FIRST_ACCEPTANCE_DAYS`, with reasons to fill
    in.

    There is one entry per rule and group; entries for findings about the cluster name the broker or
    topic.
    """
    expires = today + timedelta(days=FIRST_ACCEPTANCE_DAYS)
    keys = {
        (
            finding["rule_id"],
            *((name, value) for name in _naming(finding) if (value := finding[name]) is not None),
        )
        for finding in findings
    }
    parts = [
        "# Findings of the first run. Give each a reason and an expiry day, or fix the cause and "
        "delete it.",
        "# Names are globs: [*] matches a literal star.",
    ]
    for rule_id, *where in sorted(keys, key=str):
        parts += ["", "[[accepted]]", f'rule_id = "{rule_id}"']
        parts += [f"{name} = {_toml(_escaped(value))}" for name, value in where]
        parts += ['reason = "present at the first run"', f"expires = {expires.isoformat()}"]
    return "\n".join(parts) + "\n"


def _naming(finding: ToAccept) -> tuple[Named, ...]:
    return ("consumer_group",) if finding["consumer_group"] else WHERE[1:]


def _escaped(name: str) -> str:
    """Return a glob that matches only this name."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _toml(text: str) -> str:
    return json.dumps(text)  # a JSON string of ASCII is a TOML basic string
