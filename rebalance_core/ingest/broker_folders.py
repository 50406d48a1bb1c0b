"""Assigns each folder in ``brokers/`` to its broker, and finds name servers that fell silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rebalance_core.model.times import REGISTRATION_MS

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import ClusterEvidence, RegistrationEvidence

# The broker of each folder in ``brokers/``, by the contents of its files rather than its name.
#
# A master and its slaves share a broker name (rocketmq.md §15), and people name folders as they
# like. A slave's stores are copies of its master's; its log has its own members, because clients
# also send heartbeats to slaves (rocketmq.md §6.2). Under a controller, or after an operator's
# switch, the same process is sometimes master and sometimes slave, so each of its facts counts
# according to its role at that time.
MASTER_ID = 0
"""MixAll.MASTER_ID."""
SYNC_MEMBER_TOPIC = "rmq_sys_SYNC_BROKER_MEMBER_"
"""TopicValidator.SYNC_BROKER_MEMBER_GROUP_PREFIX (5.x): the broker's own name follows."""


@dataclass(frozen=True)
class BrokerFolder:
    """A folder in ``brokers/`` and the broker whose files it contains.

    Attributes:
        broker_name: the broker whose files are there.
        place: the owner of the consumer table that its log describes: the broker's master, as the
            broker's name, or the process itself, as the folder's path.
        authoritative: True for the master's folder, otherwise for one of its slaves': its stores
            are the broker's.
        slave: True if files show that it belongs to a slave.
        addresses: its own addresses, as far as files state them.
        identified: False if no file shows the owner, so that it is assumed to be the broker with
            its own name.
        role_known: False if another folder is authoritative for the broker and no file shows how
            the two are related.
        turns: the turns of a broker whose master changes between processes, or that was moved to
            another machine: (start, whether it is the master, ``file:line``), the first at 0.
        by_turns: whether a process of the broker changed from slave to master or vice versa.
        elected: whether DLedger elects the broker's master.
    """

    broker_name: str
    place: str
    authoritative: bool = True
    slave: bool = False
    addresses: frozenset[str] = frozenset()
    identified: bool = True
    role_known: bool = True
    turns: tuple[tuple[int, bool, str], ...] = ()
    by_turns: bool = False
    elected: bool = False

    def is_authoritative(self, at_ms: int | None) -> bool:
        """Return True if the facts in its files at that time count as the broker's."""
        if at_ms is None or not self.turns:
            return self.authoritative
        return [master for since_ms, master, _ in self.turns if since_ms <= at_ms][-1]


_Statement = tuple[int, bool, str]
"""When and where a process was recorded as a slave (True) or as the master."""


@dataclass
class _Clues:
    """A broker's identity from its folder's files; ``roles`` are stated by a controller or DLedger;
    ``elected`` if by DLedger.
    """

    booted: list[tuple[int, str, str, str]] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    local: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)
    masters: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    slave: list[_Statement] = field(default_factory=list)
    roles: list[_Statement] = field(default_factory=list)
    acting: bool = False
    elected: bool = False


@dataclass
class BrokerDirectory:
    """Broker names and roles by address, from dumps and the name servers' logs."""

    names: dict[str, str] = field(default_factory=dict)
    known_brokers: set[str] = field(default_factory=set)
    acting: set[str] = field(default_factory=set)
    """Brokers whose slaves may act as master and then take its id."""
    _listed: dict[str, list[_Statement]] = field(default_factory=dict)
    _as_slaves: set[str] = field(default_factory=set)
    _routes: dict[str, set[bool]] = field(default_factory=dict)

    def read(self, piece: ClusterEvidence, end_ms: int) -> None:
        """Record a piece of evidence about the cluster."""
        at_ms = end_ms if piece.at_ms is None else piece.at_ms
        if piece.kind in ("broker_address", "broker_known"):
            self._list(
                piece.values["address"], piece.values["broker"], (at_ms, False, piece.source)
            )
        elif piece.kind == "broker":
            slave = piece.values["broker_id"] != MASTER_ID
            self._list(
                piece.values["addr"], piece.values["broker_name"], (at_ms, slave, piece.source)
            )
        elif piece.kind == "route_broker":
            if piece.values.get("acting"):
                self.acting.add(piece.values["broker_name"])
            for broker_id, address in piece.values["addresses"].items():
                self.names[address] = piece.values["broker_name"]
                if piece.values.get("acting") and int(broker_id) == MASTER_ID:
                    continue  # a slave that acts as master also appears there
                self._routes.setdefault(address, set()).add(int(broker_id) != MASTER_ID)
            self.known_brokers.add(piece.values["broker_name"])
        elif piece.kind == "server_settings":
            self._settings(piece.values["address"], piece.values["settings"], at_ms, piece.source)
        elif piece.kind == "broker_removed":
            self.known_brokers.add(piece.values["broker"])

    def _settings(self, address: str, settings: Mapping[str, str], at_ms: int, source: str) -> None:
        if "brokerName" in settings and settings.get("brokerId", "").isdecimal():
            name = settings["brokerName"]
            self._list(address, name, (at_ms, int(settings["brokerId"]) != MASTER_ID, source))
            if settings.get("enableSlaveActingMaster") == "true":
                self.acting.add(name)

    def _list(self, address: str, name: str, statement: _Statement) -> None:
        self.names[address] = name
        self.known_brokers.add(name)
        if statement[1]:
            self._as_slaves.add(address)
        self._listed.setdefault(address, []).append(statement)

    def listed(self, address: str) -> list[_Statement]:
        """Return the roles that dumps and name servers state for this address, in any order."""
        return self._listed.get(address, [])

    def role(self, address: str) -> tuple[int, bool] | None:
        """Return when an address's role was last stated and whether it was that of a slave, or None
        if unknown.
        """
        if address in self._listed:
            at_ms, slave, _ = max(enumerate(self._listed[address]), key=_when)[1]
            stood_in = address in self._as_slaves and self.names[address] in self.acting
            return at_ms, slave or stood_in
        routes = self._routes.get(address, set())
        return (0, True in routes) if len(routes) == 1 else None

    @property
    def slaves(self) -> frozenset[str]:
        """Addresses whose last stated role is that of a slave."""
        roles = {address: self.role(address) for address in self.names}
        return frozenset(address for address, role in roles.items() if role and role[1])

    @property
    def masters(self) -> frozenset[str]:
        """Addresses whose last stated role is that of a master."""
        roles = {address: self.role(address) for address in self.names}
        return frozenset(address for address, role in roles.items() if role and not role[1])


def registered(piece: RegistrationEvidence, names: Mapping[str, str]) -> str | None:
    """Return the name of the registered broker, or None if the line has only an unknown address.

    Args:
        piece: the line.
        names: broker name by address.
    """
    if piece.kind == "broker_registered":
        return names.get(piece.values["address"])
    return piece.values["broker"]


def broker_folders(
    folders: Iterable[str], pieces: Iterable[ClusterEvidence], expected: Iterable[str], end_ms: int
) -> tuple[Mapping[str, BrokerFolder], BrokerDirectory]:
    """Return the broker of each folder, and the known addresses.

    Args:
        folders: the folders' names.
        pieces: evidence on the cluster.
        expected: broker names in ``collection.toml``.
        end_ms: the collection's end.
    """
    clues = {folder: _Clues() for folder in sorted(folders)}
    directory = BrokerDirectory(known_brokers=set(expected))
    for piece in pieces:
        directory.read(piece, end_ms)
        if piece.place in clues:
            _read(clues[piece.place], piece, end_ms)
    seen = Counter(address for of_folder in clues.values() for address in of_folder.local)
    for of_folder in clues.values():
        # behind a proxy on its host, every broker sees the same local address
        of_folder.addresses |= {address for address in of_folder.local if seen[address] == 1}
        for _, booted, address, _ in of_folder.booted:
            directory.known_brokers.add(booted)
            directory.names.setdefault(address, booted)
    names = {folder: _name(folder, of_folder, directory) for folder, of_folder in clues.items()}
    directory.acting |= {str(name) for folder, name in names.items() if clues[folder].acting}
    identified: dict[str, BrokerFolder] = {}
    for name in set(names.values()) - {None}:
        of_name = {folder: clues[folder] for folder, broker in names.items() if broker == name}
        identified |= _replicas(str(name), of_name, directory)
    for each in identified.values():
        directory.names |= dict.fromkeys(each.addresses - directory.names.keys(), each.broker_name)
    others = {f: BrokerFolder(f, f, identified=False) for f, name in names.items() if name is None}
    return identified | others, directory


def _read(clues: _Clues, piece: ClusterEvidence, end_ms: int) -> None:
    at_ms = end_ms if piece.at_ms is None else piece.at_ms
    if piece.kind == "broker_booted":
        clues.booted.append((at_ms, piece.values["broker"], piece.values["address"], piece.source))
        clues.addresses.add(piece.values["address"])
    elif piece.kind == "broker_property":
        if piece.values["name"] == "brokerName":
            clues.named.add(piece.values["value"])
        elif piece.values["name"] == "brokerId":
            clues.slave.append((at_ms, piece.values["value"] != str(MASTER_ID), piece.source))
        elif piece.values["name"] == "brokerRole":
            clues.slave.append((at_ms, piece.values["value"] == "SLAVE", piece.source))
        elif piece.values["name"] == "enableSlaveActingMaster":
            clues.acting = clues.acting or piece.values["value"].strip() == "true"
    elif piece.kind == "min_broker":
        clues.acting = True
        clues.slave.append((at_ms, True, piece.source))
    elif piece.kind == "broker_role":
        clues.addresses |= {piece.values["address"]} if "address" in piece.values else set()
        clues.named |= {piece.values["broker"]} if "broker" in piece.values else set()
        clues.elected |= "broker" in piece.values
        clues.roles.append((at_ms, piece.values["slave"], piece.source))
    elif piece.kind == "broker_local":
        clues.local.add(piece.values["address"])
    elif piece.kind in ("broker_follows", "broker_copy_failed"):
        clues.masters.add(piece.values["address"])
        clues.slave.append((at_ms, True, piece.source))
    elif piece.kind == "broker_topic":
        clues.topics.add(piece.values["topic"])


def _name(folder: str, clues: _Clues, directory: BrokerDirectory) -> str | None:
    """Return the broker's name from the best kind of clue that names a single broker."""
    prefix = SYNC_MEMBER_TOPIC
    synced = {topic.removeprefix(prefix) for topic in clues.topics if topic.startswith(prefix)}
    for names in (
        {max(clues.booted)[1]} if clues.booted else set(),
        clues.named,
        {directory.names[a] for a in clues.addresses if a in directory.names},
        {directory.names[a] for a in clues.masters if a in directory.names},
        synced,
        clues.topics & directory.known_brokers,
        {folder} & directory.known_brokers,
    ):
        if len(names) == 1:
            return next(iter(names))
    return None


def switched(folders: Iterable[BrokerFolder]) -> frozenset[str]:
    """Return the names of brokers with a process that was sometimes master and sometimes slave."""
    return frozenset(folder.broker_name for folder in folders if folder.turns and folder.by_turns)


def _when(numbered: tuple[int, _Statement]) -> tuple[int, int]:
    """Return the sort key of a statement; at equal times, the last statement read wins."""
    number, statement = numbered
    return statement[0], number


def _replicas(
    name: str, clues: Mapping[str, _Clues], directory: BrokerDirectory
) -> dict[str, BrokerFolder]:
    """Return the folders of a broker; its master's folder is authoritative, or otherwise a
    slave's.
    """
    acting = name in directory.acting
    roles = {folder: _is_slave(clue, directory, acting) for folder, clue in clues.items()}
    turns, by_turns = _turns(clues, directory, acting)
    masters = [folder for folder, moments in turns.items() if moments[-1][1]]
    rank = {False: 0, None: 1, True: 2}
    first = min(masters or clues, key=lambda folder: (rank[roles[folder]], folder != name, folder))
    if by_turns:
        roles |= {folder: folder not in masters for folder in turns}
    place = f"brokers/{first}" if roles[first] else name
    replicas = {}
    for folder, clue in clues.items():
        authoritative = folder == first or bool(clue.addresses & clues[first].addresses)
        another = bool(clue.addresses) and roles[first] is False  # newer than the master: a slave
        replicas[folder] = BrokerFolder(
            name,
            place if authoritative else f"brokers/{folder}",
            authoritative,
            roles[folder] is True,
            frozenset(clue.addresses),
            role_known=authoritative or roles[folder] is not None or another,
            turns=turns.get(folder, ()),
            by_turns=by_turns,
            elected=any(each.elected for each in clues.values()),
        )
    return replicas


def _turns(
    clues: Mapping[str, _Clues], directory: BrokerDirectory, acting: bool
) -> tuple[dict[str, tuple[tuple[int, bool, str], ...]], bool]:
    """Return the role changes of each folder, and True if a process was both slave and master.

    If two folders claim to belong to the master, the last claim counts.
    """
    stated = {folder: _statements(clue, directory, acting) for folder, clue in clues.items()}
    both = [
        {slave for _, slave, _ in statements} == {True, False} for statements in stated.values()
    ]
    ordered = sorted(
        (at_ms, not slave, _process(folder, clues), source)
        for folder, statements in stated.items()
        for at_ms, slave, source in statements
    )
    if len({process for _, master, process, _ in ordered if master}) < 2 and not any(both):
        return {}, False
    turns: dict[str, list[tuple[int, bool, str]]] = {}
    now: str | None = None
    for at_ms, master, process, source in ordered:
        before, now = now, process if master else None if now == process else now
        for folder in {before, now} - {None} if before != now else ():
            of_folder = turns.setdefault(str(folder), [])
            # lines from before it first became master do not make it a slave
            begins = not before and not of_folder and not _was_slave(stated[str(folder)], at_ms)
            of_folder.append((0 if begins and len(turns) == 1 else at_ms, folder == now, source))
    by_folder = {
        folder: tuple(moments if moments[0][0] == 0 else [(0, False, moments[0][2]), *moments])
        for folder in clues
        for moments in [turns.get(_process(folder, clues)) or [(0, False, "")]]
    }
    return by_folder, any(both)


def _process(folder: str, clues: Mapping[str, _Clues]) -> str:
    """Return the alphabetically first of the folders that belong to the same process."""
    addresses = clues[folder].addresses
    return min([folder, *(other for other, clue in clues.items() if clue.addresses & addresses)])


def _was_slave(statements: Iterable[_Statement], at_ms: int) -> bool:
    return any(slave for since_ms, slave, _ in statements if since_ms < at_ms)


def _statements(clues: _Clues, directory: BrokerDirectory, acting: bool) -> list[_Statement]:
    """Return the evidence of a process's role: its controller's or DLedger's lines, or otherwise
    all other evidence.

    With a controller or DLedger the settings do not count. A start repeats the current role, and a
    process that no line calls a slave starts as master. A slave that acts as master is not a
    master.
    """
    if clues.roles:
        return clues.roles
    if acting:
        return []
    statements = list(clues.slave)
    for address in clues.addresses:
        statements += directory.listed(address)
    last = max(statements, default=None)
    if last is not None and not last[1]:
        for at_ms, _, _, source in clues.booted:
            before = [statement for statement in statements if statement[0] <= at_ms]
            if not (before and max(before)[1]):
                statements.append((at_ms, False, source))
    return statements


def _is_slave(clues: _Clues, directory: BrokerDirectory, acting: bool) -> bool | None:
    """Return True if its newest role is slave, by its own statement where slaves may act as
    master.
    """
    if clues.roles:
        return max(enumerate(clues.roles), key=_when)[1][1]
    logged = [(at_ms, slave) for at_ms, slave, _ in clues.slave]
    if acting and logged:
        return max(logged)[1]
    by_address = [directory.role(address) for address in sorted(clues.addresses)]
    statements = [*logged, *(role for role in by_address if role is not None)]
    return max(statements)[1] if statements else None


HEARD_MS = 2 * REGISTRATION_MS
"""The time within which every live broker registers with a restarted name server (60 s at most)."""
_LOSSES = ("broker_removed", "replica_removed", "broker_channel_closed", "broker_expired")


def silences(ordered: Sequence[ClusterEvidence]) -> dict[int, str]:
    """Return name servers by the number of their last piece of evidence before a restart.

    Nothing shows how long it lived after that. While it lived, it logged each broker that it lost,
    so it had also lost any broker that another name server has lost since.

    Args:
        ordered: evidence on the cluster by time.
    """
    last: dict[str, int] = {}
    silent: dict[int, str] = {}
    for number, piece in enumerate(ordered):
        if piece.kind == "name_server_starting" and piece.place in last:
            silent[last[piece.place]] = piece.place
        last[piece.place] = number
    return silent


def without_graceful_stops(pieces: Iterable[ClusterEvidence]) -> list[ClusterEvidence]:
    """Return the evidence without brokers that a name server lost by shutting down.

    At a graceful stop, name servers of 4.9 close all connections and log each broker as removed;
    clients keep the routes that they have.
    """
    pieces = list(pieces)
    turns: dict[str, list[tuple[int, bool]]] = {}
    for piece in pieces:
        if piece.at_ms is None:
            continue
        if piece.kind in ("name_server_starting", "name_server_stopping"):
            stops = piece.kind == "name_server_stopping"
            turns.setdefault(piece.place, []).append((piece.at_ms, stops))
    return [piece for piece in pieces if piece.kind not in _LOSSES or not _stops(piece, turns)]


def _stops(piece: ClusterEvidence, turns: dict[str, list[tuple[int, bool]]]) -> bool:
    before = [turn for turn in turns.get(piece.place, ()) if turn[0] <= (piece.at_ms or 0)]
    return max(before, default=(0, False))[1]
