"""What becomes of each finding from night to night."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_core.audit.changes import RULES, fingerprint
from rebalance_core.audit.known_issues import SNOOZED_UNTIL
from rebalance_core.audit.outcome import shown_first
from rebalance_core.contracts.history import ACCEPTED, GONE, NEW, OPEN, SNOOZED, UNSEEN
from rebalance_core.history.night import Night
from rebalance_core.history.owners import Owner, owner_of
from rebalance_core.model.verdicts import INFO

Row = Mapping[str, Any]


@dataclass
class _Life:
    """One finding, up to some night; ``needs``: kinds of files that it was last seen by."""

    finding: Row
    needs: tuple[str, ...]
    state: str
    first_ms: int
    last_ms: int
    seen: int = 1
    unseen: int = 0
    reopened: int = 0


class FindingLives:
    """Follows the findings of one cluster from night to night.

    A finding that a night lacks is gone only if that night would have found it again: it looked at
    the finding's group, had the kinds of files that it was seen by, and kept all of its rule.
    """

    def __init__(self) -> None:
        self._lives: dict[str, _Life] = {}
        self._truncated: Sequence[str] = ()

    def add(self, night: Night) -> None:
        """Take the next night, in order of time."""
        found = _by_fingerprint(night.findings)
        for name, finding in found.items():
            may_be_old = finding["rule_id"] in self._truncated
            self._lives[name] = _met(self._lives.get(name), finding, night, may_be_old=may_be_old)
        for name, life in self._lives.items():
            if name not in found and life.state != GONE:
                _miss(life, night)
        self._truncated = night.truncated

    def rows(self, owners: Sequence[Owner] = ()) -> list[dict[str, Any]]:
        """Return rows of ``open_findings``, by fingerprint.

        ``owners``: who is told of which groups.
        """
        return [_row(name, life, owners) for name, life in sorted(self._lives.items())]


def _by_fingerprint(findings: Iterable[Row]) -> dict[str, Row]:
    """The findings above INFO; of several with one fingerprint the one that is shown first."""
    rows = [row for row in findings if row["severity"] != INFO]
    return {fingerprint(row): row for row in reversed(shown_first(rows, len(rows)))}


def _met(life: _Life | None, finding: Row, night: Night, *, may_be_old: bool) -> _Life:
    """The life of a finding that this night has.

    Args:
        life: up to now; None: no night had it.
        finding: the row.
        night: this night.
        may_be_old: the night before did not keep all of its rule, so it may have had it.
    """
    state = OPEN
    if life.state == GONE if life is not None else not may_be_old:
        state = NEW
    if finding["accepted"] is not None:
        state = SNOOZED if finding["accepted"].startswith(SNOOZED_UNTIL) else ACCEPTED
    rule, at_ms = RULES.get(finding["rule_id"]), night.row["end_ms"]
    kinds = rule.files if rule is not None else ()
    needs = tuple(kind for kind in kinds if night.files.has(kind, finding["consumer_group"]))
    met = _Life(finding, needs, state, at_ms, at_ms)
    if life is not None:
        met.first_ms, met.seen = life.first_ms, life.seen + 1
        met.reopened = life.reopened + (life.state == GONE)
    return met


def _miss(life: _Life, night: Night) -> None:
    """Note that this night lacks a finding."""
    looked = night.looked.at(life.finding, life.needs)
    if looked and life.finding["rule_id"] not in night.truncated:
        life.state = GONE
    else:
        life.state = UNSEEN
        life.unseen += 1


def _row(name: str, life: _Life, owners: Sequence[Owner]) -> dict[str, Any]:
    finding = life.finding
    return {
        "cluster": finding["cluster"],
        "fingerprint": name,
        "rule_id": finding["rule_id"],
        "consumer_group": finding["consumer_group"],
        "topic": finding["topic"],
        "owner": owner_of(owners, finding["cluster"], finding["consumer_group"]),
        "state": life.state,
        "first_night_ms": life.first_ms,
        "last_seen_ms": life.last_ms,
        "nights_seen": life.seen,
        "nights_unseen": life.unseen,
        "reopened": life.reopened,
        "severity": finding["severity"],
        "summary": finding["summary"],
        "caused_by": finding.get("caused_by"),
    }
