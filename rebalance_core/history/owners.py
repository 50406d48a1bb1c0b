"""The teams and channels to notify about each group, from ``owners.toml``."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import cast

from rebalance_core.audit.accepted_findings import toml_entries
from rebalance_core.audit.known_issues import TomlTable
from rebalance_core.history.channels import Channel, channels_of
from rebalance_core.model.errors import UsageError, unknown_keys

KEYS = ("pattern", "cluster", "team", "channel")


@dataclass(frozen=True, slots=True)
class Owner:
    """An entry of ``owners.toml``: the team for the matching groups and clusters.

    ``channel`` is where the team is notified, such as a chat room; empty if nowhere.
    """

    pattern: str
    cluster: str
    team: str
    channel: str = ""


@dataclass(frozen=True, slots=True)
class Owners:
    """The contents of ``owners.toml``.

    Attributes:
        entries: the entries in order, of which the first match counts.
        channels: the channels with a webhook.
    """

    entries: tuple[Owner, ...] = ()
    channels: tuple[Channel, ...] = ()


def owner_of(owners: Iterable[Owner], cluster: str, group: str | None) -> str | None:
    """Return the team of the first matching entry, if any.

    A finding without a group belongs to the first entry whose pattern is ``*``.
    """
    entry = entry_of(owners, cluster, group)
    return None if entry is None else entry.team


def entry_of(owners: Iterable[Owner], cluster: str, group: str | None) -> Owner | None:
    """Return the first entry that matches a group, if any."""
    for owner in owners:
        named = owner.pattern == "*" if group is None else fnmatchcase(group, owner.pattern)
        if named and fnmatchcase(cluster, owner.cluster):
            return owner
    return None


def read_owners(text: str, where: str) -> Owners:
    """Read the file.

    ```toml
    [[owner]]
    pattern = "order-*"     # groups, a glob
    cluster = "prod-*"      # a glob; left out: any
    team = "checkout"
    channel = "#checkout"   # may be left out

    [[channel]]
    name = "#checkout"
    webhook = "CHECKOUT_WEBHOOK"  # the environment variable that contains the URL
    body = "slack"          # dingtalk, feishu, teams; or a JSON object with $title and $text
    ```

    Args:
        text: the text of the file.
        where: its name, for messages.

    Raises:
        UsageError: the file has mistakes; the message names each with its line.
    """
    entries, mistakes = toml_entries(text, where, "owner", "owner", beside=["channel"])
    mistakes += [f"{line}: {mistake}" for line, entry in entries for mistake in _mistakes(entry)]
    made, _ = toml_entries(text, where, "channel", "channel", beside=["owner"])
    named = {name for _, entry in entries if isinstance(name := entry.get("channel"), str)}
    channels, wrong = channels_of(made, named)
    if mistakes or wrong:
        raise UsageError("\n".join([*mistakes, *wrong]))
    if not entries:
        raise UsageError(f"{where}: no [[owner]] table, so no group has an owner")
    checked = cast("list[tuple[str, Mapping[str, str]]]", entries)
    return Owners(tuple(Owner(**{"cluster": "*", **entry}) for _, entry in checked), channels)


def _mistakes(entry: TomlTable) -> Iterator[str]:
    yield from (text for _, text in unknown_keys(entry, KEYS))
    for name, value in entry.items():
        if name in KEYS and (not isinstance(value, str) or not value.strip()):
            yield f"{name} = {value!r} is not a text"
    for name in ("pattern", "team"):
        if name not in entry:
            yield f"{name} is missing"
