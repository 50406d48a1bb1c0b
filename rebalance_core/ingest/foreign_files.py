"""Lists of members (consumerConnection), and stores of offsets, of other clusters or environments,
and lists that are older than their names state.

Another environment may have the same brokers and groups, and another cluster may have other groups:
no log in this collection names the clients in its lists. By itself, this may be due to a log that
begins late. A list belongs to others if, moreover,

* by the log of the queried broker, which names none of them, other members of the group were
  connected at that time; or
* no log or store of the brokers has the group, or any topic that it subscribes to; or
* it shares clients with such a list.

A consumerOffset.json belongs to others if no log or other store has any of its groups or topics.

A list with the text of an earlier one, including the port of each connection, is that one if by the
broker's log a listed client left in between or another one came.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    CLIENT_LOG,
    MEMBERS,
    OFFSETS,
    CollectedFile,
    Collection,
)
from rebalance_core.ingest.fact import OLD_ANSWER, OTHER_CLUSTER, Unreadable
from rebalance_core.ingest.file_reader import (
    ANSWER,
    BEGUN,
    CLOSED,
    COMMIT,
    JOIN,
    LIST,
    MEMBER,
    MOST_WITNESSES,
    SEEN,
    SUBSCRIBED,
    UP,
    FileStats,
)
from rebalance_core.ingest.stored_names import StoredNames, stored_names
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import MINUTE_MS, SECOND_MS

STEADY_MS = MINUTE_MS
"""A member must be unchanged for this long before and after a list that lacks it, because the clock
that dates the list may be wrong.
"""

AT_ONCE_MS = 10 * SECOND_MS
"""A broker's list reflects joins and leaves at once, and a greater difference between its clock and
the one that dates the list would be detected (`clock_offsets`).
"""


def foreign_files(collection: Collection, stats: Iterable[FileStats]) -> dict[str, Unreadable]:
    """Return, by file, the reason for each foreign member list and consumerOffset.json, and for
    each list that repeats an older one. If a log names more members than were recorded, the result
    is empty.

    Args:
        collection: the files.
        stats: the stats of each file.
    """
    understood = _Understood(collection, tuple(stats))
    if any(len(log.witnessed) >= MOST_WITNESSES for log in understood.logs):
        return {}
    why = _foreign_lists(understood) | _foreign_offsets(understood)
    old = {
        name: Unreadable(OLD_ANSWER, message) for name, message in _old_lists(understood).items()
    }
    return old | {name: Unreadable(OTHER_CLUSTER, message) for name, message in why.items()}


@dataclass(frozen=True)
class _Understood:
    """The files of a collection, and how each was understood."""

    collection: Collection
    stats: tuple[FileStats, ...]

    @cached_property
    def files(self) -> dict[str, CollectedFile]:
        return {file.name: file for file in self.collection.files}

    @cached_property
    def logs(self) -> list[FileStats]:
        return [s for s in self.stats if s.kind in (BROKER_LOG, CLIENT_LOG)]

    def is_complete(self, stored: StoredNames) -> bool:
        """Return True if the names come from the stores of all brokers, of which there is at least
        one.
        """
        brokers = {*self.collection.broker_folders, *self.collection.settings.brokers}
        return bool(brokers) and brokers <= {self.files[name].place for name in stored.files}


def _foreign_lists(understood: _Understood) -> dict[str, str]:
    """Return, by file, why each list of other clients is considered one."""
    files, logs = understood.files, understood.logs
    lists = [s for s in understood.stats if _is_list(files[s.name]) and any(s.members())]
    if not lists:
        return {}
    logged = {client_id for log in logs for client_id in _clients(log)}
    answered = {f.arguments[2] for f in files.values() if f.kind == ADMIN and f.arguments[2:]}
    members = _LoggedMembers.of(logs, files)
    stored = stored_names(understood.stats)
    all_stored = understood.is_complete(stored)
    unnamed = {each.name: _listed(each) for each in lists if not _listed(each) & logged}
    of_others: dict[str, str] = {}
    for each in (each for each in lists if each.name in unnamed):
        answers = unnamed[each.name] & answered
        present = "" if answers else members.beside(each, files[each.name].written_ms)
        if present:
            of_others[each.name] = (
                f"it lists other clients, which no other file names, and {present}"
            )
        elif all_stored and _is_unknown(each, stored, members):
            group = min(group for group, _ in each.members())
            of_others[each.name] = (
                "it lists other clients, which no log names, and no log or store names "
                f"{group} or its topics"
            )
    return of_others | _with_clients_of(of_others, unnamed)


def _old_lists(understood: _Understood) -> dict[str, str]:
    """Return, by file, the reason for each list that repeats an earlier one after its members had
    changed, and for lists of the group from other brokers that repeat one in the same minute.
    """
    repeats = list(_repeats(understood))
    if not repeats:
        return {}
    members = _LoggedMembers.of(understood.logs, understood.files)
    old = {
        each.shown.name: f"it repeats {each.earlier}, and {change}"
        for each in repeats
        if (change := members.changed(each.shown, each.since_ms, each.at_ms))
    }
    shown_old = [each for each in repeats if each.shown.name in old]
    for each in repeats:
        beside = next((other for other in shown_old if each.is_beside(other)), None)
        if each.shown.name not in old and beside is not None:
            old[each.shown.name] = f"it repeats {each.earlier}, as {beside.shown.name} does"
    return old


@dataclass(frozen=True, slots=True)
class _Repeat:
    """A list of members with the text of an earlier one; times in epoch ms."""

    shown: FileStats
    at_ms: int
    earlier: str
    since_ms: int

    def is_beside(self, other: "_Repeat") -> bool:
        """Return True for lists of the same group made in the same minute."""
        groups = {group for group, _ in self.shown.members()}
        same = any(group in groups for group, _ in other.shown.members())
        return same and abs(self.at_ms - other.at_ms) <= MINUTE_MS


def _repeats(understood: _Understood) -> Iterator[_Repeat]:
    files = understood.files
    lists = [s for s in understood.stats if _is_list(files[s.name]) and any(s.members())]
    dated = [(files[s.name].written_ms or 0, s) for s in lists if files[s.name].written_ms]
    first: dict[str, tuple[int, str]] = {}
    for at_ms, each in sorted(dated, key=lambda pair: (pair[0], pair[1].name)):
        for text in (name for name in each.witnessed if name.startswith(ANSWER)):
            since_ms, earlier = first.setdefault(text, (at_ms, each.name))
            if earlier != each.name:
                yield _Repeat(each, at_ms, earlier, since_ms)


def _with_clients_of(
    of_others: Mapping[str, str], unnamed: Mapping[str, set[str]]
) -> dict[str, str]:
    """Return why lists that share clients with such a list belong to others."""
    found = {}
    for name in sorted(unnamed.keys() - of_others.keys()):
        beside = next((other for other in of_others if unnamed[other] & unnamed[name]), None)
        if beside is not None:
            found[name] = f"it lists other clients, which no log names; {beside} does too"
    return found


def _is_list(file: CollectedFile) -> bool:
    """Return True for a broker's list; a proxy's has clients that brokers do not log."""
    return file.kind == ADMIN and file.arguments[0] == MEMBERS and not file.place


def _listed(each: FileStats) -> set[str]:
    return {client_id for _, client_id in each.members()}


def _clients(log: FileStats) -> Iterator[str]:
    """Yield the ids of clients that a log names."""
    yield from (client_id for _, client_id in log.members())
    for name in log.marks:
        for mark in (JOIN, SEEN, BEGUN, CLOSED):
            if name.startswith(mark):
                yield name.removeprefix(mark)


def _is_unknown(each: FileStats, stored: StoredNames, members: "_LoggedMembers") -> bool:
    topics = {n.removeprefix(SUBSCRIBED) for n in each.witnessed if n.startswith(SUBSCRIBED)}
    groups = {group for group, _ in each.members()}
    return (
        bool(topics)
        and topics.isdisjoint(stored.topics)
        and groups.isdisjoint(stored.groups)
        and groups.isdisjoint(members.groups)
    )


def _foreign_offsets(understood: _Understood) -> dict[str, str]:
    """Return, by file, why each consumerOffset.json of another cluster is considered one."""
    stats = understood.stats
    stored = stored_names(s for s in stats if s.kind != OFFSETS)
    if not understood.is_complete(stored):
        return {}
    groups = stored.groups | {group for s in stats for group, _ in s.members()}
    found = {}
    for store in (s for s in stats if s.kind == OFFSETS and not s.rejected):
        names = (name.removeprefix(COMMIT) for name in store.witnessed if name.startswith(COMMIT))
        commits = [(group, topic) for group, topic, *_ in (name.split(" ") for name in names)]
        topics = {topic for _, topic in commits if not is_retry_topic(topic)}
        if not topics or topics & stored.topics or groups & {group for group, _ in commits}:
            continue
        group, topic = min(pair for pair in commits if pair[1] in topics)
        found[store.name] = (
            f"it has offsets of {group} for {topic}, and of no group or topic that a log or "
            "another store names"
        )
    return found


@dataclass(frozen=True, slots=True)
class _LoggedMembers:
    """Arrivals and departures of members by the brokers' logs.

    Attributes:
        changes: (time, 1 or -1) by folder, group and client id.
        sources: a log of each folder.
        starts: when brokers started, by folder; every connection is new then.
        ends: when the folder's log last states something.
        groups: all groups.
    """

    changes: dict[tuple[str, str], dict[str, list[tuple[int, int]]]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    starts: dict[str, list[int]] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, logs: Iterable[FileStats], files: Mapping[str, CollectedFile]) -> "_LoggedMembers":
        """Return those in all brokers' logs."""
        found = cls()
        for log in (log for log in logs if log.kind == BROKER_LOG):
            place = files[log.name].place
            found.sources[place] = log.name
            found.ends[place] = max(log.last_ms or 0, found.ends.get(place, 0))
            for name, moments in log.marks.items():
                if name.startswith(UP):
                    found.starts.setdefault(place, []).extend(moments)
            for group, client_id in log.members():
                found.groups.add(group)
                of_group = found.changes.setdefault((place, group), {})
                changes = log.witnessed[f"{MEMBER}{group} {client_id}"]
                of_group.setdefault(client_id, []).extend(changes)
        return found

    def beside(self, each: FileStats, at_ms: int | None) -> str:
        """Return the clients that were connected when a list without them was made; empty if no log
        shows any.

        Args:
            each: the list.
            at_ms: when it was made; None if unknown.
        """
        asked = [name.split(" ")[1:] for name in each.witnessed if name.startswith(LIST)]
        for group, broker in asked if at_ms is not None else ():
            for client_id, changes in sorted(self.changes.get((broker, group), {}).items()):
                if at_ms is not None and self._is_steady(broker, sorted(changes), at_ms):
                    return f"according to {self.sources[broker]}, {client_id} was connected then"
        return ""

    def changed(self, each: FileStats, since_ms: int, at_ms: int) -> str:
        """Return a client in a list that had left, or another one that had come, for good by the
        time it was made; empty if no log shows any.
        """
        listed = _listed(each)
        asked = [name.split(" ")[1:] for name in each.witnessed if name.startswith(LIST)]
        for group, broker in asked:
            for client_id, changes in sorted(self.changes.get((broker, group), {}).items()):
                last_ms, turn = max(
                    (one for one in changes if one[0] <= at_ms + AT_ONCE_MS), default=(0, 0)
                )
                if since_ms < last_ms <= at_ms - AT_ONCE_MS and (turn < 0) == (client_id in listed):
                    came = "left" if turn < 0 else "came"
                    return f"according to {self.sources[broker]}, {client_id} {came} in between"
        return ""

    def _is_steady(self, place: str, changes: list[tuple[int, int]], at_ms: int) -> bool:
        """Return True for a member that was present at a time, and for a while before and after."""
        before = [change for change in changes if change[0] <= at_ms - STEADY_MS]
        if not before or before[-1][1] < 0 or self.ends[place] < at_ms - STEADY_MS:
            return False
        since_ms, until_ms = before[-1][0], at_ms + STEADY_MS
        meanwhile = [*(ms for ms, _ in changes), *self.starts.get(place, ())]
        return not any(since_ms < ms <= until_ms for ms in meanwhile)
