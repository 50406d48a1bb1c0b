"""Behaviour of a broker's slaves while it has no master: refuse reads, serve reads, or act as
master.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rebalance_core.ingest.broker_folders import (
    MASTER_ID,
)
from rebalance_core.ingest.replicas import Replicas

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        ClusterEvidence,
        PullRefusedValues,
    )


from collections.abc import Mapping
from typing import TYPE_CHECKING

from rebalance_core.model.events import ACTING, REFUSED, SLAVE_READ

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        ClusterEvidence,
        RouteBrokerValues,
    )

SLAVE_READ_ENABLE, ACTING_ENABLE = "slaveReadEnable", "enableSlaveActingMaster"
"""Properties that a broker logs at its start."""


ACTING_SUPPORT = "supportActingMaster"
"""The name server property without which no slave acts as master."""


class SlaveModes:
    """The settings of the slaves, and observations of them.

    Args:
        pieces: evidence on the cluster, in chronological order.
        replicas: the replicas of its brokers.
    """

    def __init__(self, pieces: Iterable[ClusterEvidence], replicas: Replicas) -> None:
        self._reads: dict[str, list[tuple[int, bool]]] = {}
        self._acts: dict[str, list[tuple[int, bool]]] = {}
        self._supports: list[tuple[int, bool]] = []
        self._acted: dict[str, list[int]] = {}
        self._refused: dict[str, list[int]] = {}
        for piece in pieces:
            self._take(piece, piece.at_ms or 0, replicas)

    def _take(self, piece: ClusterEvidence, at_ms: int, replicas: Replicas) -> None:
        folder = replicas.folders.get(piece.place)
        if piece.kind == "broker_property" and folder is not None:
            on = piece.values["value"].strip() == "true"
            if piece.values["name"] == ACTING_ENABLE:
                self._acts.setdefault(folder.broker_name, []).append((at_ms, on))
            elif piece.values["name"] == SLAVE_READ_ENABLE and (folder.slave or folder.by_turns):
                self._reads.setdefault(folder.broker_name, []).append((at_ms, on))
        elif piece.kind == "route_broker":
            self._take_route(piece.values, at_ms, replicas)
        elif piece.kind == "server_settings":
            stated = piece.values
            self._take_settings(stated["address"], stated["settings"], at_ms, replicas)
        elif piece.kind == "min_broker" and folder is not None:
            self._acts.setdefault(folder.broker_name, []).append((at_ms, True))
            self._acted.setdefault(folder.broker_name, []).append(at_ms)
        elif piece.kind == "name_server_property":
            self._supports.append((at_ms, piece.values["value"].strip() == "true"))
        elif piece.kind == "pull_refused" and _is_of_slave(piece.values, replicas):
            name = replicas.names.get(piece.values["address"])
            self._refused.setdefault(name or "", []).append(at_ms)

    def _take_route(self, route: RouteBrokerValues, at_ms: int, replicas: Replicas) -> None:
        acting, addresses = route.get("acting"), route["addresses"]
        if acting is None:
            return
        self._acts.setdefault(route["broker_name"], []).append((at_ms, acting))
        first = {int(broker_id): address for broker_id, address in addresses.items()}.get(MASTER_ID)
        alone = first in replicas.slaves or (first is None and bool(addresses))
        if acting and alone:
            # a name server that supports acting masters gives the id of a missing master to a slave
            self._supports.append((at_ms, first is not None))

    def _take_settings(
        self, address: str, settings: Mapping[str, str], at_ms: int, replicas: Replicas
    ) -> None:
        name = settings.get("brokerName") or replicas.names.get(address, "")
        on = {setting: value == "true" for setting, value in settings.items()}
        if ACTING_SUPPORT in on:
            self._supports.append((at_ms, on[ACTING_SUPPORT]))
        if ACTING_ENABLE in on:
            self._acts.setdefault(name, []).append((at_ms, on[ACTING_ENABLE]))
        if SLAVE_READ_ENABLE in on and address in replicas.slaves:
            self._reads.setdefault(name, []).append((at_ms, on[SLAVE_READ_ENABLE]))

    def at_end(self, broker_name: str, end_ms: int) -> str | None:
        """Return what the slaves would do if the master went down now, or None if no file shows
        it.
        """
        mode = self.mode_of(broker_name, end_ms, None)
        return REFUSED if mode is None and self._refused.get(broker_name) else mode

    def mode_of(self, broker_name: str, down_ms: int, up_ms: int | None) -> str | None:
        """Return what the slaves do during an outage of the broker's master.

        The result is None if no file shows it. A setting that was never seen before the outage is
        taken from the first time it was seen. A slave that is configured to act does so if the name
        server supports it, which a slave that took over shows as well.
        """

        def seen(times: Iterable[int]) -> bool:
            return any(down_ms <= at_ms and (up_ms is None or at_ms < up_ms) for at_ms in times)

        supported = _last(self._supports, down_ms)
        if _last(self._acts.get(broker_name, ()), down_ms) and supported is not False:
            if supported or seen(self._acted.get(broker_name, ())):
                return ACTING
            return REFUSED if seen(self._refused.get(broker_name, ())) else None
        reads = _last(self._reads.get(broker_name, ()), down_ms)
        if reads is not None:
            return SLAVE_READ if reads else REFUSED
        return REFUSED if seen(self._refused.get(broker_name, ())) else None


def _last(stated: Iterable[tuple[int, bool]], at_ms: int) -> bool | None:
    """Return the last value stated by that time, otherwise the first one after it, otherwise
    None.
    """
    before = [on for since_ms, on in stated if since_ms <= at_ms]
    after = [on for since_ms, on in stated if since_ms > at_ms]
    return before[-1] if before else next(iter(after), None)


def _is_of_slave(refusal: PullRefusedValues, replicas: Replicas) -> bool:
    """Return True if a slave refused the pull because slaves must not be read."""
    return "reason" not in refusal and refusal["address"] in replicas.slaves
