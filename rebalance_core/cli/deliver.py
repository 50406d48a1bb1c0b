"""Delivers findings to webhooks, and records what each channel has received."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rebalance_core.cli.run.output_run import DELIVERED_NAME
from rebalance_core.cli.run.webhook import DeliveryFailed, post_json, webhook_url
from rebalance_core.cli.terminal import warn
from rebalance_core.history.messages import Message, message_of
from rebalance_core.history.owners import Owners
from rebalance_core.model.errors import UsageError
from rebalance_core.model.nouns import counted
from rebalance_core.storage.store_answers import reason_of

if TYPE_CHECKING:
    from rebalance_core.cli.run.output_folder import OutputFolder
    from rebalance_core.contracts.rows import RowsByTable

Known = dict[str, dict[str, int]]
"""The end of the last delivered night by channel and cluster. A failed delivery leaves it
unchanged, so that the next night tries again.
"""


@dataclass(frozen=True)
class Delivery:
    """The delivery to a channel.

    Attributes:
        channel: the channel's name.
        findings: the number of findings.
        delivered: whether the channel accepted them; None with ``--dry-run``, which sends nothing.
        error: why it failed.
        body: with ``--dry-run``, what would be sent.
    """

    channel: str
    findings: int
    delivered: bool | None
    error: str | None = None
    body: Any = None


def check_webhooks(owners: Owners) -> None:
    """Raise `UsageError` unless there is a channel and every channel has a URL."""
    if not owners.channels:
        raise UsageError("--deliver: the file of --owners has no [[channel]] table")
    for channel in owners.channels:
        webhook_url(channel.webhook, os.environ)


def deliver(rows: RowsByTable, owners: Owners, folder: OutputFolder) -> list[Delivery]:
    """Send each channel its news, and record in the folder what it has received.

    A failure is only a warning, since no later step depends on it.

    Args:
        rows: the tables of history.
        owners: the owners and channels.
        folder: the folder of the history.
    """
    known = _known(folder)
    before, ends = _last_ends(rows, 1), _last_ends(rows)
    deliveries = []
    for channel in owners.channels:
        made = _of_channel(rows, owners, channel.name, known)
        if made is not None:
            try:
                url = webhook_url(channel.webhook, os.environ)
                post_json(url, channel.body_of(made.title, made.text))
            except (DeliveryFailed, UsageError) as error:
                warn(
                    f"channel {channel.name} ({channel.webhook}): {error}; the next run tries again"
                )
                failed = Delivery(channel.name, made.findings, delivered=False, error=str(error))
                deliveries.append(failed)
                # of a first delivery, the next night would otherwise count as the only one
                known[channel.name] = before | known.get(channel.name, {})
                _note(folder, known)
                continue
            deliveries.append(Delivery(channel.name, made.findings, delivered=True))
        known[channel.name] = known.get(channel.name, {}) | ends
        _note(folder, known)
    return deliveries


def would_deliver(rows: RowsByTable, owners: Owners, folder: OutputFolder) -> list[Delivery]:
    """Return the messages that `deliver` would send."""
    known = _known(folder)
    made = [
        (channel, _of_channel(rows, owners, channel.name, known)) for channel in owners.channels
    ]
    return [
        Delivery(
            channel.name, message.findings, None, body=channel.body_of(message.title, message.text)
        )
        for channel, message in made
        if message is not None
    ]


def lines_of(deliveries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the deliveries as lines of text, given the facts of a job."""
    lines = []
    for made in deliveries:
        findings = counted(made["findings"], "finding")
        if made["delivered"] is None:
            lines += [f"to {made['channel']}: {findings}"]
            lines += [json.dumps(made["body"], ensure_ascii=False, indent=2)]
        else:
            how = "delivered" if made["delivered"] else f"not delivered: {made['error']}"
            lines += [f"{made['channel']}: {findings} {how}"]
    return lines


def facts_of(deliveries: Sequence[Delivery]) -> list[dict[str, Any]]:
    """Return the deliveries as facts for JSON."""
    return [asdict(made) for made in deliveries]


def _of_channel(rows: RowsByTable, owners: Owners, name: str, known: Known) -> Message | None:
    delivered = known.get(name, {})
    return message_of(name, rows["nights"], rows["open_findings"], owners.entries, delivered)


def _last_ends(rows: RowsByTable, but: int = 0) -> dict[str, int]:
    """Return the end of each cluster's last night, or of an earlier one; -1 before the first."""
    ends: dict[str, list[int]] = defaultdict(lambda: [-1])
    for night in rows["nights"]:
        ends[night["cluster"]].append(night["end_ms"])
    return {cluster: of_cluster[-1 - but] for cluster, of_cluster in ends.items()}


def _known(folder: OutputFolder) -> Known:
    """Return what the channels have received; empty if the file is damaged."""
    try:
        text = (folder / DELIVERED_NAME).read_text()
        found = {} if text is None else json.loads(text)
        return {
            str(channel): {str(cluster): int(end_ms) for cluster, end_ms in ends.items()}
            for channel, ends in found.items()
        }
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "damaged"
        warn(f"{folder.url}/{DELIVERED_NAME}: {why}; only the last night's findings are delivered")
        return {}


def _note(folder: OutputFolder, known: Known) -> None:
    try:
        (folder / DELIVERED_NAME).write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    except OSError as error:
        warn(f"{folder.url}/{DELIVERED_NAME}: {reason_of(error)}; the next run delivers again")
