"""What every group and topic has to know of the cluster: brokers, their starts, the time span."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.client_version import is_modelled, plain_version
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.model.versions import parse_version


@dataclass(frozen=True)
class ClusterContext:
    """Small and plain: it travels to every task.

    Attributes:
        cluster: name of the cluster.
        start_ms: first moment that any log of a server covers; what was there already is OBSERVED
            at this time.
        end_ms: last moment of the collection; documents without a time are of then.
        brokers: names of all brokers.
        addresses: broker name by address.
        versions: broker version by name, where a dump tells.
        permissions: brokerPermission by broker and time of its start, newest last.
        starts: (time, source) of each start of a broker; its table of consumers is empty then.
        ends: (time, source) of each moment at which a broker was out of the route or stopped.
        assumed: what is taken where no file says it.
        given: rows of the collection's consumer_groups.jsonl by group.
        client_zones: time zone by client folder.
        logged: brokers whose broker.log was collected.
        mode_stores: (broker, time, source) of each messageRequestMode.json that was read whole.
    """

    cluster: str
    start_ms: int
    end_ms: int
    brokers: tuple[str, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    permissions: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    starts: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    ends: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    assumed: Assumptions = field(default_factory=Assumptions)
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    client_zones: Mapping[str, str] = field(default_factory=dict)
    logged: frozenset[str] = frozenset()
    mode_stores: tuple[tuple[str, int, str], ...] = ()

    def effective_perm(self, broker: str, perm: int, at_ms: int) -> int:
        """The topic's perm as the broker registers it (SEM §6.3).

        A brokerPermission without R or W replaces the perm in 4.9 and masks it from 5.0.
        """
        permission = 6
        for since_ms, value in self.permissions.get(broker, ()):
            if since_ms <= at_ms:
                permission = value
        if permission & 6 == 6:
            return perm
        version = self.versions.get(broker)
        replaces = version is not None and parse_version(version).is_v4
        return permission if replaces else perm & permission

    def time_of(self, piece: Evidence) -> int:
        """When the evidence was true."""
        return self.end_ms if piece.at_ms is None else piece.at_ms


def cluster_context(
    pieces: Iterable[Evidence],
    *,
    cluster: str,
    start_ms: int,
    end_ms: int,
    brokers: Iterable[str],
    assumed: Assumptions,
    given: Mapping[str, Mapping[str, Any]],
    client_zones: Mapping[str, str],
    logged: frozenset[str],
) -> ClusterContext:
    """The context from the evidence on the cluster.

    Args:
        pieces: evidence with part CLUSTER.
        cluster: name of the cluster.
        start_ms: first moment of the servers' logs.
        end_ms: last moment of the collection.
        brokers: names of folders and of ``collection.toml``.
        assumed: see `Assumptions`.
        given: rows of consumer_groups.jsonl by group.
        client_zones: time zone by client folder.
        logged: brokers whose broker.log was collected.
    """
    names = set(brokers)
    addresses: dict[str, str] = {}
    versions: dict[str, str] = {}
    permissions: dict[str, set[tuple[int, int]]] = {}
    starts: dict[str, set[tuple[int, str]]] = {}
    ends: dict[str, set[tuple[int, str]]] = {}
    mode_stores: set[tuple[str, int, str]] = set()
    for piece in pieces:
        values = piece.values
        if piece.kind in ("broker_booted", "broker_address", "broker_known"):
            addresses[values["address"]] = values["broker"]
        elif piece.kind == "route_broker":
            addresses |= dict.fromkeys(values["addresses"].values(), values["broker_name"])
        elif piece.kind == "broker":
            addresses[values["addr"]] = values["broker_name"]
            version = plain_version(values["version"] or "")
            if is_modelled(version) and str(values["broker_id"]) == "0":
                versions[values["broker_name"]] = version
        elif piece.kind == "broker_starting" and piece.at_ms is not None:
            permissions.setdefault(piece.place, set()).add((piece.at_ms, values["perm"]))
            starts.setdefault(piece.place, set()).add((piece.at_ms, piece.source))
        elif piece.kind in ("broker_removed", "broker_stopping") and piece.at_ms is not None:
            name = values.get("broker", piece.place)
            names.add(name)
            ends.setdefault(name, set()).add((piece.at_ms, piece.source))
        elif piece.kind == "request_modes":
            at_ms = end_ms if piece.at_ms is None else piece.at_ms
            mode_stores.add((piece.place, at_ms, piece.source))
    return ClusterContext(
        cluster,
        start_ms,
        end_ms,
        tuple(sorted(names | set(addresses.values()))),
        addresses,
        versions,
        {name: tuple(sorted(found)) for name, found in permissions.items()},
        {name: tuple(sorted(found)) for name, found in starts.items()},
        {name: tuple(sorted(found)) for name, found in ends.items()},
        assumed,
        given,
        client_zones,
        logged,
        tuple(sorted(mode_stores)),
    )
