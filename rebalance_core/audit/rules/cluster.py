"""Name servers that differ, brokers that flap, and slaves that refuse to be read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import TYPE_CHECKING

from rebalance_core.audit.broker_states import flap_times
from rebalance_core.audit.coverage import LOG_SILENT_MS, logs_of, name_servers_gap
from rebalance_core.audit.group_snapshot import (
    BROKER,
    ClusterSnapshot,
    Finding,
    Rule,
    grouped,
    listed,
    plural,
)
from rebalance_core.model.events import REFUSED
from rebalance_core.model.timeline import first_gap
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, MINUTE_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import BrokerRegisteredFact, MasterAddressFact

STARTS_MS = 5_000
"""A broker registers before it logs that it is up; both logs have whole seconds."""


def find_refusing_slaves(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield a finding for all brokers whose slaves refuse reads, unless a file states otherwise.

    The outages of a broker's master count where no BROKER_SLAVES is there.
    """
    modes = {broker: outages[-1].mode for broker, outages in group.run.masters.items()}
    refusing = {broker for broker, mode in modes.items() if mode == REFUSED}
    assumed: set[str] = set()
    for row in group.facts["BROKER_SLAVES"]:
        broker, mode = row["broker_name"], row["details"]["mode"]
        refusing.discard(broker)
        if not mode:
            assumed.add(broker)
        elif mode == REFUSED:
            refusing.add(broker)
    if not refusing and not assumed:
        return
    brokers = sorted(refusing | assumed)
    unless = " (the default; the files do not show every broker's setting)" if assumed else ""
    yield Finding(
        f"Slaves of {plural(len(brokers), 'broker')} refuse reads{unless}, so if a master goes "
        f"down, its queues stay allocated and no client reads them: {listed(brokers)}.",
        {"refuse": ", ".join(sorted(refusing)), "by_default": ", ".join(sorted(assumed))},
    )


TAKEN_AGAIN = 3
"""Two processes that take turns registering one name this often are not a failover."""
TURN_MS = 10 * MINUTE_MS
"""Brokers register every 30 s, but name servers print the address only occasionally."""


def find_taken_names(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield a finding for each broker name that two processes with id 0 take turns registering."""
    by_broker = grouped(group.facts["MASTER_ADDRESS"], lambda row: row["broker_name"])
    for broker, rows in sorted(by_broker.items()):
        taken = {
            first["details"]["address"]: first
            for first, second in permutations(rows, 2)
            if _in_turns(first, second, failover=broker in group.run.slaves)
        }
        if not taken:
            continue
        first_ms = max(row["first_ms"] for row in taken.values())
        last_ms = max(row["last_ms"] for row in taken.values())
        shown = [
            f"{address} ({row['details']['cluster'] or 'no cluster printed'}, "
            f"{row['times']} times until {utc(row['last_ms'])})"
            for address, row in sorted(taken.items())
        ]
        over = group.run.end_ms - last_ms > TURN_MS
        yield Finding(
            f"{len(taken)} processes with broker id 0 register as {broker} in turns since "
            f"{utc(first_ms)}: {listed(shown, 4)}. Clients, and mqadmin, reach whichever "
            "registered last.",
            {
                "addresses": listed(sorted(taken)),
                "clusters": listed(sorted({row["details"]["cluster"] for row in taken.values()})),
            },
            broker_name=broker,
            first_ms=first_ms,
            last_ms=last_ms if over else None,
            ended_by="the name servers' logs continue without another occurrence" if over else "",
        )


def _in_turns(first: MasterAddressFact, second: MasterAddressFact, *, failover: bool) -> bool:
    """Return True if each master registered again after the other, more often than in a
    failover.
    """
    apart = first["details"]["address"] != second["details"]["address"]
    mixed = first["first_ms"] < second["last_ms"] and second["first_ms"] < first["last_ms"]
    if not apart or not mixed:
        return False
    clusters = {first["details"]["cluster"], second["details"]["cluster"]} - {""}
    return len(clusters) > 1 or (
        not failover and min(first["times"], second["times"]) >= TAKEN_AGAIN
    )


def find_unregistered(group: ClusterSnapshot) -> Iterator[Finding]:
    """Find brokers that some name servers with a log list and others do not."""
    views: dict[str, dict[str, BrokerRegisteredFact]] = {}
    servers = {row["details"]["name"] for row in group.facts["NAME_SERVER_FILE"]}
    for row in group.facts["BROKER_REGISTERED"]:
        views.setdefault(row["broker_name"], {})[row["details"]["name"]] = row
    logs = logs_of(group.coverage, "namesrv_log")
    for broker, words in sorted(views.items()):
        registered = {
            server for server, row in words.items() if row["details"]["registered"] == "true"
        }
        without = sorted((servers | words.keys()) - registered)
        if registered and without:
            seen = dict.fromkeys(sorted(registered), "registered")
            heard_ms = {server: row["first_ms"] for server, row in words.items()}
            begins = dict.fromkeys(without, min(heard_ms.values())) | heard_ms
            yield Finding(
                f"{broker} is registered with the other name servers, but not with "
                f"{', '.join(without)}.",
                seen | dict.fromkeys(without, "not there"),
                broker_name=broker,
                unknown=name_servers_gap(logs, begins) if logs else None,
            )


def find_flaps(group: ClusterSnapshot) -> Iterator[Finding]:
    """Find brokers that expired and were back at once without a restart.

    Whether a broker restarted is unknown if its log does not cover the whole time, or if its clock
    is off.
    """
    coverage = group.run.coverage
    for name, times in sorted(flap_times(group.broker_events, group.facts).items()):
        longest = max(up - gone for gone, up in times) / 1000
        begin, end = times[0][0], times[-1][1]
        log = coverage.of_broker(name)
        yield Finding(
            f"{name} expired and came back {plural(len(times), 'time')}, within {longest:.0f} s.",
            {"times": len(times), "longest_s": f"{longest:.0f}"},
            broker_name=name,
            first_ms=begin,
            last_ms=end,
            unknown=first_gap(coverage.clocks_of([name]), begin, end)
            or log.gap(begin - CHANNEL_EXPIRY_MS, end + STARTS_MS + LOG_SILENT_MS),
        )


TAKEN = Rule(
    "BROKER_NAME_TAKEN",
    ERROR,
    "Two brokers with id 0 register the same name at the same name servers, for example when two "
    "clusters share them. Name servers keep the newest address, so clients switch between the two "
    "brokers.",
    "MASTER_ADDRESS of the name servers' logs",
    "Give each broker its own name (brokerName), or each cluster its own name servers, and "
    "restart the brokers. Messages that reached the wrong broker stay there.",
    find_in_cluster=find_taken_names,
    state=True,
)
NAME_SERVERS_DIFFER = Rule(
    "NAME_SERVERS_DIFFER",
    ERROR,
    "Two name servers list different brokers at the end of the collection, so their clients "
    "divide different queues.",
    "BROKER_REGISTERED of each name server's log",
    "Check the broker's name server list (namesrvAddr) and the network between them.",
    about=BROKER,
    files=("namesrv_log",),
    find_in_cluster=find_unregistered,
)

BROKER_FLAPS = Rule(
    "BROKER_FLAPS",
    WARNING,
    "A broker expired at the name server and registered again within two minutes without a "
    "restart: its heartbeats stall, and every client's queues on it move twice.",
    "BROKER_DOWN (EXPIRED) and BROKER_UP; BROKER_STARTED",
    "Look for long pauses of the broker (GC, disk) and for packet loss between it and the name "
    "server.",
    about=BROKER,
    find_in_cluster=find_flaps,
)


SLAVE_NOT_READABLE = Rule(
    "SLAVE_NOT_READABLE",
    INFO,
    "Slaves refuse reads (slaveReadEnable=false, the default where no file names it). When their "
    "master goes down, its queues stay allocated and no client can read them.",
    "BROKER_SLAVES, MASTER_DOWN (REFUSED)",
    "To keep consuming without the master, set slaveReadEnable=true on the slaves, or let a slave "
    "act as master (enableSlaveActingMaster).",
    find_in_cluster=find_refusing_slaves,
)
