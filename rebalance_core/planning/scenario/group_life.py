"""A group under a scenario: its members at each instant, and the actions that edits may take."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rebalance_core.model import events
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    CLIENT_REBALANCE,
    PROXY_REBALANCE,
    PUSH,
    without_suspend,
)
from rebalance_core.model.intervals import INTERVALS
from rebalance_core.model.languages import JAVA
from rebalance_core.model.request_mode import RequestMode
from rebalance_core.model.times import DAY_MS
from rebalance_core.planning.client_ids import (
    MadeId,
    address_of,
    addresses_of_network,
    host_of,
    read_made_id,
    template_of,
)
from rebalance_core.planning.scenario.cluster_life import (
    Row,
    RowLog,
    Timeline,
    entity_of,
    proxy_of_source,
)
from rebalance_core.synthetic.draws import Draws

# An id that RocketMQ's client generates (`MadeId`) is new at each start; with an instance name, a
# process returns under the same id on another channel (rocketmq.md §1.1).
_ADDRESS_CHANNEL = re.compile(r"(?P<address>.+):(?P<port>\d+)")
_PROCESS_CHANNEL = re.compile(r"(?P<place>.+)/(?P<pid>\d+)")

NANOS_PER_MS = 1_000_000
CONTAINER_PID = "1"
LOWEST_PID, HIGHEST_PID = 400, 65_000
LOWEST_PORT, HIGHEST_PORT = 32_768, 60_999  # Linux's ephemeral ports
LONGEST_START_MS = 5_000

ProcessKey = tuple[str, str | None]


def restarted(
    key: ProcessKey, joined_ms: int, at_ms: int, taken: Collection[ProcessKey], draws: Draws
) -> ProcessKey:
    """Return the id and channel of the process that replaces ``key`` on the same host.

    Args:
        key: the process that ended.
        joined_ms: when it joined; the host's ``System.nanoTime`` has advanced since.
        at_ms: when the new process joins.
        taken: ids and channels in use.
        draws: random numbers for this restart.
    """
    made = read_made_id(key[0])
    while True:
        client_id, pid = key[0], _pid(made, draws)
        if made is not None:
            gone_ms = max(0, at_ms - joined_ms) + draws.between(1, LONGEST_START_MS)
            nanos = int(made.nanos) + gone_ms * NANOS_PER_MS + draws.between(0, NANOS_PER_MS - 1)
            client_id = str(replace(made, pid=pid, nanos=str(nanos)))
        new = client_id, _next_channel(key[1], made.host if made else None, pid, draws)
        if new not in taken:
            return new


def newcomer(
    model: ProcessKey,
    at_ms: int,
    taken: Collection[ProcessKey],
    number: int,
    draws: Draws,
    language: str | None = None,
) -> ProcessKey:
    """Return the id and channel of an additional process, on its own host near that of ``model``.

    A new IPv4 address differs only in the last number, so by any prefix it is in the same room as
    the model; other hosts get the suffix ``-n<number>``. The id has the form of the model's, or
    that of clients in the language.
    """
    host, separator, instance = model[0].partition("@")
    hosts = {host_of(client_id) for client_id, _ in taken}
    address = _free_host(host, hosts, number, draws)
    made = read_made_id(model[0])
    client_id, pid = f"{address}{separator}{instance}", _pid(made, draws)
    if made is not None or language is not None:
        nanos = draws.between(1, 200 * DAY_MS) * NANOS_PER_MS + draws.between(0, 999_999)
    if made is not None:
        client_id = str(MadeId(address, pid, str(nanos), made.ending))
    if language is not None:
        client_id = template_of(language).format(ip=address, pid=pid, nanos=nanos)
    if model[1] is not None and (place := _PROCESS_CHANNEL.fullmatch(model[1])):
        return client_id, f"{place['place']}-n{number}/{pid}"
    return client_id, f"{address}:{draws.between(LOWEST_PORT, HIGHEST_PORT)}"


def _pid(made: MadeId | None, draws: Draws) -> str:
    """Return a random process id; in a container, every process has the same one."""
    drawn = str(draws.between(LOWEST_PID, HIGHEST_PID))
    return CONTAINER_PID if made is not None and made.pid == CONTAINER_PID else drawn


def _free_host(host: str, hosts: Collection[str], number: int, draws: Draws) -> str:
    """Return an address from the network of ``host`` or from a neighbouring one, or a name."""
    near = address_of(host)
    if near is not None:
        free = [address for address in addresses_of_network(near) if address not in hosts]
        if free:
            return draws.pick(free)
        third = [n for n in range(256) if n != near.packed[2]]
        wide = (a for n in draws.shuffled(third) for a in addresses_of_network(near, n))
        free_wide = next((address for address in wide if address not in hosts), None)
        if free_wide is not None:
            return free_wide
    name = f"{host}-n{number}"
    while name in hosts:
        name += "x"
    return name


def _next_channel(channel: str | None, host: str | None, pid: str, draws: Draws) -> str:
    """Return the new process's connection: another port, or the location in the log and the pid."""
    port = draws.between(LOWEST_PORT, HIGHEST_PORT)
    if channel is None:
        return f"{host or 'restarted'}:{port}"
    if place := _PROCESS_CHANNEL.fullmatch(channel):
        return f"{place['place']}/{pid}"
    if address := _ADDRESS_CHANNEL.fullmatch(channel):
        return f"{address['address']}:{port}"
    return f"{channel}:{port}"


def _another_port(channel: str | None, client_id: str, draws: Draws) -> str:
    """Return another connection of the same process."""
    found = _ADDRESS_CHANNEL.fullmatch(channel or "")
    address = found["address"] if found else channel or host_of(client_id)
    return f"{address}:{draws.between(LOWEST_PORT, HIGHEST_PORT)}"


# Everything that happens to a member passes through here, so no row can name a missing process.
LIVE, STARTING, GONE = "LIVE", "STARTING", "GONE"
JOIN_COLUMNS = (
    "subscriptions",
    "strategy",
    "version",
    "message_model",
    "consume_from_where",
    "rebalance_mode",
    "language",
    *INTERVALS,
)
"""The settings that a process sends when it joins."""

MemberData = dict[str, Any]
JoinRule = Callable[[MemberData], MemberData]


@dataclass(slots=True, eq=False)
class EditedMember:
    """A place in the group, with its recorded process or the process that a scenario put there."""

    key: ProcessKey
    joined_ms: int
    settings: MemberData
    state: str = LIVE
    proxy: str | None = None
    """The proxy that it is connected to, if a row or an edit states it."""


LOST_CONNECTION = "CLOSED"
"""The detail of a CONSUMER_LOST event whose connection closed."""


def draws_of(seed: str, group: tuple[str, str], purpose: str) -> Draws:
    """Return random numbers for a group, given as cluster and name, and a purpose."""
    return Draws(0, "/".join((seed, *group, purpose)))


class GroupLife(Timeline):
    """The members of a group, from event to event.

    A recorded event of a process that the scenario has restarted applies to its replacement; events
    of a process that it has removed are dropped, up to the process's recorded end.
    """

    def __init__(
        self,
        cluster: str,
        consumer_group: str,
        rows: Sequence[Row],
        *,
        end_ms: int,
        group_row: Mapping[str, Any] | None = None,
        queues: Mapping[str, int] | None = None,
        proxies: Sequence[str] = (),
        seed: str = "0",
        joined: Mapping[ProcessKey, int] | None = None,
    ) -> None:
        super().__init__(RowLog(cluster, entity_of(consumer_group), consumer_group), end_ms)
        self.cluster = cluster
        self.consumer_group = consumer_group
        self.group_topics: Sequence[str] | None = (group_row or {}).get("subscriptions")
        self.group_strategy: str = (group_row or {}).get("strategy") or "AVG"
        self.group_rebalance_mode: str = (group_row or {}).get("rebalance_mode") or CLIENT_REBALANCE
        self.ordered = bool((group_row or {}).get("ordered"))
        self.consumer_type: str = (group_row or {}).get("consumer_type") or PUSH
        self.topics = frozenset(self.group_topics or ()) | _topics_named(rows)
        self._queues = queues or {}
        self._broadcasts = (group_row or {}).get("message_model") == BROADCASTING
        self.proxies = tuple(proxies)
        self.proxies_back: dict[str, int] = {}
        """When each proxy that is down returns."""
        self.join_rules: list[JoinRule] = []
        self.last: EditedMember | None = None
        self._modes: set[str] = set()
        self._seed = seed
        self._joined = joined or {}
        self._places: dict[ProcessKey, EditedMember] = {}
        self._members: list[EditedMember] = []
        of_consumers = [row for row in rows if row["event_type"] in events.CONSUMER_EVENTS]
        self._taken = {(row["client_id"], row["channel_id"]) for row in of_consumers}
        self._made = 0

    def members(self) -> list[EditedMember]:
        """Return the live members, by id and channel."""
        live = [member for member in self._members if member.state == LIVE]
        return sorted(live, key=lambda member: (member.key[0], member.key[1] or ""))

    def age_ms(self, member: EditedMember) -> int:
        """Return how long ago a member joined."""
        return self.now_ms - self._joined.get(member.key, member.joined_ms)

    @property
    def queues(self) -> int | None:
        """Return the number of queues in the largest topic that members divide, or None if
        unknown.
        """
        if self._broadcasts or self.asks_broker():
            return None
        topics = self.topics & self._queues.keys()
        return max((self._queues[topic] for topic in topics), default=None)

    def is_proxied(self, member: EditedMember) -> bool:
        """Return True if a member is a gRPC client behind a proxy."""
        return self._mode_of(member) == PROXY_REBALANCE

    def without_suspend(self, member: EditedMember) -> str | None:
        """Return the kind of a member that has no ``suspend()``, or None if it has one."""
        return without_suspend(self.consumer_type, self._mode_of(member))

    def _mode_of(self, member: EditedMember) -> str:
        mode: str | None = member.settings["rebalance_mode"]
        return mode or self.group_rebalance_mode

    def draws(self, purpose: str) -> Draws:
        """Return random numbers for this group and a purpose; equal for equal purposes."""
        return draws_of(self._seed, (self.cluster, self.consumer_group), purpose)

    def topics_of(self, settings: MemberData) -> tuple[str, ...] | None:
        """Return the topics to which a process with these settings subscribes, or None if
        unknown.
        """
        stated = settings["subscriptions"]
        topics = self.group_topics if stated is None else stated
        return None if topics is None else tuple(topics)

    def resubscribed(
        self, settings: MemberData, *, more: Iterable[str] = (), fewer: Iterable[str] = ()
    ) -> MemberData:
        """Return the settings with other topics; unknown subscriptions remain unknown."""
        topics = self.topics_of(settings)
        if topics is None:
            return settings
        return settings | {"subscriptions": sorted({*topics, *more} - {*fewer})}

    def how_many(self, count: int | None, share: float | None) -> int:
        """Return ``count``, or ``share`` of the number of members, rounded up."""
        if count is not None:
            return count
        return math.ceil(round((share or 0) * len(self.members()), 6))

    def join_newcomer(
        self, model: EditedMember, source: str, language: str | None = None
    ) -> EditedMember:
        """Join another process like ``model``; with a language, it is a client in that language."""
        self._made += 1
        draws = self.draws(f"newcomer/{self._made}")
        settings = dict(model.settings)
        if language == (settings["language"] or JAVA):
            language = None  # like its model
        key = newcomer(model.key, self.now_ms, self._taken, self._made, draws, language)
        if language is not None:
            settings |= {"language": language, "version": None}
        for rule in self.join_rules:
            settings = rule(settings)
        member = EditedMember(key, self.now_ms, settings)
        self._members.append(member)
        self._join(member, source)
        return member

    def rejoin(self, member: EditedMember, change: JoinRule, source: str) -> None:
        """Change the settings of a live member without a restart."""
        if member.state == LIVE:
            member.settings = change(member.settings)
            self._join(member, source)

    def remove(self, member: EditedMember, source: str, detail: str | None = None) -> None:
        """Remove a live member for good; with a detail it is lost, otherwise it leaves."""
        if member.state == LIVE:
            lost = events.CONSUMER_LEAVE if detail is None else events.CONSUMER_LOST
            self.tell(member, lost, source, detail=detail)
            member.state = GONE

    def suspend(self, member: EditedMember, source: str) -> None:
        """Suspend a live member."""
        if member.state == LIVE:
            self.tell(member, events.CONSUMER_SUSPEND, source)

    def replace(
        self,
        member: EditedMember,
        source: str,
        join_after_ms: int,
        stays_ms: int | None = None,
        detail: str | None = None,
        change: JoinRule | None = None,
        new_address: bool = False,
    ) -> None:
        """Give a live member a successor, which joins before or after the member stops.

        A departed member is left as it is.

        Args:
            member: the member.
            source: the source named in the rows.
            join_after_ms: the time until the successor joins.
            stays_ms: how long the member stays from then on; None: it stops now.
            detail: how it is lost, or None if it leaves.
            change: derives the successor's settings from the old ones.
            new_address: whether the successor has another address.
        """
        if member.state != LIVE:
            return
        if stays_ms is not None:
            self.after(
                join_after_ms,
                self._join_first,
                member,
                source,
                stays_ms,
                detail,
                change,
                new_address,
            )
            return
        self.remove(member, source, detail)
        member.state = STARTING
        self.after(join_after_ms, self._start, member, source, change, new_address)

    def disconnect(self, member: EditedMember, source: str) -> None:
        """Break a live member's connection; its process keeps running until `reconnect`."""
        self.remove(member, source, LOST_CONNECTION)
        member.state = STARTING

    def reconnect(self, member: EditedMember, source: str) -> bool:
        """Reconnect a disconnected member under its own id; return False if it has ended."""
        if member.state != STARTING:
            return False
        client_id, channel_id = member.key
        draws = self.draws(f"reconnect/{client_id}/{channel_id}/{self.now_ms}")
        while member.key in self._taken:
            member.key = client_id, _another_port(channel_id, client_id, draws)
        member.state = LIVE
        self._join(member, source)
        return True

    def tell(self, member: EditedMember, event_type: str, source: str, **values: Any) -> None:
        """Add a new row about a live member."""
        client_id, channel_id = member.key
        self.log.add(
            self.now_ms, event_type, source, client_id=client_id, channel_id=channel_id, **values
        )

    def subscribe(self, member: EditedMember, topic: str, source: str) -> None:
        """Subscribe a running member to another topic."""
        topics = self.topics_of(member.settings)
        if member.state == LIVE and topics is not None and topic not in topics:
            self._topics_changed(member, events.SUBSCRIBE, topic)
            self.tell(member, events.SUBSCRIBE, source, topic=topic)

    def set_request_mode(self, topic: str, mode: RequestMode, source: str) -> None:
        """Set the mode in which brokers serve the topic; its later recorded modes are dropped."""
        self._modes.add(topic)
        self.log.add(self.now_ms, events.REQUEST_MODE, source, topic=topic, detail=str(mode))

    def asks_broker(self) -> bool:
        """Return True if a live member lets a broker allocate."""
        return BROKER_REBALANCE in map(self._mode_of, self.members())

    def recorded(self, row: Row) -> None:
        """Handle a recorded row about the process or its replacement."""
        if row["event_type"] == events.REQUEST_MODE and row["topic"] in self._modes:
            self.log.drop(row)
            return
        key = (row["client_id"], row["channel_id"])
        member = self._places.get(key)
        if row["event_type"] == events.CONSUMER_JOIN:
            self._recorded_join(row, key, member)
        elif member is None:
            # from an unknown process, which the replay rejects as before, or about the group itself
            self.log.keep(row)
        else:
            self._recorded_change(row, key, member)

    def _recorded_join(self, row: Row, key: ProcessKey, member: EditedMember | None) -> None:
        stated = {name: row[name] for name in JOIN_COLUMNS}
        settings = stated
        for rule in self.join_rules:
            settings = rule(settings)
        if member is None:
            member = self._places[key] = EditedMember(key, self.now_ms, settings)
            self._members.append(member)
        else:
            member.settings = settings
        member.proxy = proxy_of_source(row["source"]) or member.proxy
        self.last = member
        self._write(row, member, {} if settings == stated else settings)

    def _recorded_change(self, row: Row, key: ProcessKey, member: EditedMember) -> None:
        event_type = row["event_type"]
        if event_type in (events.SUBSCRIBE, events.UNSUBSCRIBE):
            self._topics_changed(member, event_type, row["topic"])
        self._write(row, member, {})
        if event_type in (events.CONSUMER_LEAVE, events.CONSUMER_LOST):
            member.state = GONE
            del self._places[key]
            self._members.remove(member)

    def _write(self, row: Row, member: EditedMember, values: Mapping[str, Any]) -> None:
        recorded_key = (row["client_id"], row["channel_id"])
        if member.state != LIVE:
            self.log.drop(row)
        elif values or member.key != recorded_key:
            client_id, channel_id = member.key
            self.log.change(row, client_id=client_id, channel_id=channel_id, **values)
        else:
            self.log.keep(row)

    def _start(
        self, member: EditedMember, source: str, change: JoinRule | None, new_address: bool
    ) -> None:
        if member.state != STARTING:
            return  # it was due to end earlier
        member.key = self._successor_key(member, new_address)
        member.joined_ms, member.state = self.now_ms, LIVE
        if change is not None:
            member.settings = change(member.settings)
        self._join(member, source)

    def _join_first(
        self,
        member: EditedMember,
        source: str,
        stays_ms: int,
        detail: str | None,
        change: JoinRule | None,
        new_address: bool,
    ) -> None:
        """Join the successor while the member stays for a further time."""
        if member.state != LIVE:
            return
        settings = dict(member.settings) if change is None else change(member.settings)
        successor = EditedMember(self._successor_key(member, new_address), self.now_ms, settings)
        self._members.append(successor)
        self._join(successor, source)
        self.after(stays_ms, self._take_over, member, successor, source, detail)

    def _take_over(
        self, member: EditedMember, successor: EditedMember, source: str, detail: str | None
    ) -> None:
        """Stop the member; later recorded events of its process apply to the successor."""
        self.remove(member, source, detail)
        self._places = {
            key: successor if place is member else place for key, place in self._places.items()
        }

    def _successor_key(self, member: EditedMember, new_address: bool) -> ProcessKey:
        client_id, channel_id = member.key
        if new_address:
            self._made += 1
            # not by time, so that the process is the same at every pace
            draws = self.draws(f"successor/{client_id}/{channel_id}")
            return newcomer(member.key, self.now_ms, self._taken, self._made, draws)
        draws = self.draws(f"restart/{client_id}/{channel_id}/{self.now_ms}")
        return restarted(member.key, member.joined_ms, self.now_ms, self._taken, draws)

    def _join(self, member: EditedMember, source: str) -> None:
        self._taken.add(member.key)
        self.last = member
        self.tell(member, events.CONSUMER_JOIN, source, **member.settings)

    def _topics_changed(self, member: EditedMember, event_type: str, topic: str) -> None:
        if event_type == events.SUBSCRIBE:
            if self.topics_of(member.settings) is None:  # what a row states is known from then on
                member.settings = member.settings | {"subscriptions": []}
            member.settings = self.resubscribed(member.settings, more=[topic])
        else:
            member.settings = self.resubscribed(member.settings, fewer=[topic])


def _topics_named(rows: Sequence[Row]) -> frozenset[str]:
    """Return every topic named in a row of the group."""
    topics = (row["topic"] for row in rows if row["topic"] is not None)
    return frozenset(topics).union(*(row["subscriptions"] or () for row in rows))
