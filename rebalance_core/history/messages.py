"""Composes the messages to channels: new, reopened and healed findings of their groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.contracts.history import (
    HEALED,
    NEW,
    NOT_LOOKED_AT,
    OPEN,
    REOPENED,
    FindingState,
    subject_of,
)
from rebalance_core.history.owners import Owner, entry_of
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import WORST_FIRST
from rebalance_core.report.visible import visible

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import NightsRow, OpenFindingsRow

DELIVERED_STATES: tuple[FindingState, ...] = (NEW, REOPENED, HEALED)
LISTED = 12
"""The maximum number of findings in a message; the lowest limit of any service is DingTalk's 20,000
bytes.
"""
LONGEST_SENTENCE, LONGEST_NAME = 300, 120  # characters
_STANDING: tuple[FindingState, ...] = (NEW, OPEN, REOPENED, NOT_LOOKED_AT)
_NO_MARKUP = str.maketrans({"<": "‹", ">": "›"})
"""Slack and Feishu would interpret <!channel> and <at …> in a name."""

Delivered = Mapping[str, int]
"""The end of the last night delivered to a channel, by cluster."""


@dataclass(frozen=True)
class Message:
    """A message to a channel.

    Attributes:
        title: one line.
        text: a paragraph per finding.
        findings: the number of findings.
    """

    title: str
    text: str
    findings: int


Change = tuple[FindingState, "OpenFindingsRow"]


def message_of(
    channel: str,
    nights: Sequence[NightsRow],
    findings: Sequence[OpenFindingsRow],
    owners: Sequence[Owner],
    delivered: Delivered,
) -> Message | None:
    """Return the message with a channel's news, or None if there is none.

    Findings that follow from another finding in the message are only counted.

    Args:
        channel: the channel's name.
        nights: rows of ``nights``, in order of their key.
        findings: rows of ``open_findings``.
        owners: entries of ``owners.toml``.
        delivered: see `Delivered`; if a cluster is missing, only its last night is new.
    """
    ends: dict[str, list[int]] = defaultdict(list)
    for night in nights:
        ends[night["cluster"]].append(night["end_ms"])
    changes: list[Change] = []
    for row in findings:
        entry = entry_of(owners, row["cluster"], row["consumer_group"])
        if entry is None or entry.channel != channel:
            continue
        before = [-1, *ends[row["cluster"]]][-2]
        state = _changed(row, delivered.get(row["cluster"], before))
        if state is not None:
            changes.append((state, row))
    return (
        _message(changes, {name: max(times) for name, times in ends.items()}) if changes else None
    )


def _changed(row: OpenFindingsRow, since_ms: int) -> FindingState | None:
    """Return the change in a finding since a night, or None if it is not to be delivered."""
    over_ms, opened_ms = row["over_night_ms"], row["opened_night_ms"]
    if row["state"] == HEALED and over_ms is not None and over_ms > since_ms:
        return HEALED
    if row["state"] in _STANDING and opened_ms is not None and opened_ms > since_ms:
        return REOPENED if row["reopened"] else NEW
    return None


def _message(changes: Sequence[Change], ends: Mapping[str, int]) -> Message:
    there = {(row["cluster"], row["fingerprint"]) for _, row in changes}
    following: Counter[tuple[str, str | None]] = Counter()
    causes: list[Change] = []
    for state, row in changes:
        cause = (row["cluster"], row["caused_by"])
        if cause in there:
            following[cause] += 1
        else:
            causes.append((state, row))
    causes.sort(
        key=lambda change: (
            DELIVERED_STATES.index(change[0]),
            WORST_FIRST.index(change[1]["severity"]),
            change[1]["cluster"],
            change[1]["consumer_group"] or "",
            change[1]["summary"],
        )
    )
    counted = Counter(state for state, _ in causes)
    numbers = ", ".join(f"{counted[s]:,} {s}" for s in DELIVERED_STATES if counted[s])
    clusters = sorted({row["cluster"] for _, row in causes})
    shown = ", ".join(
        f"{_shown(name, LONGEST_NAME)} until {utc(ends[name])}" for name in clusters[:LISTED]
    )
    parts = [
        _paragraph(*change, following[change[1]["cluster"], change[1]["fingerprint"]])
        for change in causes[:LISTED]
    ]
    if len(causes) > LISTED:
        parts.append(f"… and {len(causes) - LISTED:,} more, listed on the history page.")
    return Message(f"rebalance: {numbers} in {shown}", "\n\n".join(parts), len(causes))


def _paragraph(state: FindingState, row: OpenFindingsRow, followers: int) -> str:
    what = _shown(subject_of(row), LONGEST_NAME)
    follow = "1 finding follows" if followers == 1 else f"{followers:,} findings follow"
    more = f" ({follow} from it)" if followers else ""
    line = f"{state} {row['severity']} {what}: {_shown(row['summary'], LONGEST_SENTENCE)}{more}"
    if state == HEALED:
        return line
    return f"{line}\n→ {_shown(row['remedy'], LONGEST_SENTENCE)}"


def _shown(text: str, longest: int) -> str:
    return visible(text, longest).translate(_NO_MARKUP)
