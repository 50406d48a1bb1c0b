"""Addresses of the brokers' masters and slaves, as far as files show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_core.ingest.broker_folders import (
    BrokerFolder,
    switched,
)
from rebalance_core.ingest.parse.inside_second import MIDDLE_MS

MIDDLE_OF_SECOND_MS = MIDDLE_MS
"""Servers' logs have whole seconds, so their events are dated to the middle of the second."""


@dataclass(frozen=True)
class Replicas:
    """The processes behind all brokers.

    Attributes:
        names: broker name by address.
        slaves: addresses of slaves.
        masters: addresses of masters.
        folders: the broker whose files each folder in brokers/ contains.
        lone_slaves: brokers whose slave remains in the route without its master (5.0 and later).
    """

    names: Mapping[str, str]
    slaves: frozenset[str]
    masters: frozenset[str]
    folders: Mapping[str, BrokerFolder]
    lone_slaves: frozenset[str] = frozenset()

    @property
    def replicated(self) -> frozenset[str]:
        """The names of brokers with a slave."""
        of_addresses = {self.names[address] for address in self.slaves if address in self.names}
        of_folders = {folder.broker_name for folder in self.folders.values() if folder.slave}
        return frozenset(of_addresses | of_folders | self.switched)

    @property
    def switched(self) -> frozenset[str]:
        """The names of brokers whose replicas take turns as master."""
        return switched(self.folders.values())

    def is_master(self, address: str) -> bool:
        """Return True if the address is stated as master, or all the broker's other ones are
        slaves.
        """
        if address in self.masters or address in self.slaves:
            return address not in self.slaves
        name = self.names.get(address)
        others = {replica for replica, broker in self.names.items() if broker == name} - {address}
        return name is not None and bool(others) and others <= self.slaves
