"""Hosts of a group's processes, and the client id and channel of each start (rocketmq.md §1.1)."""

from dataclasses import dataclass, field

from rebalance_core.model.group_settings import (
    BROADCASTING,
    LITE_PULL,
)
from rebalance_core.model.times import DAY_MS
from rebalance_core.synthetic.draws import Draws
from rebalance_core.synthetic.groups import BY_INSTANCE, ONE_FOR_ALL, FleetGroup

SHARED_ADDRESS = "172.17.0.1"  # docker0: any container on a host network may report it
LONGEST_UPTIME_MS = 200 * DAY_MS
NANOS_PER_MS = 1_000_000
CONTAINER_PID = 1


@dataclass(frozen=True, slots=True)
class FleetProcess:
    """A running consumer as the brokers see it."""

    client_id: str
    channel_id: str


@dataclass(slots=True, eq=False)
class Seat:
    """A host or a pod that runs, or is about to run, a consumer of the group."""

    number: int
    address: str
    booted_ms: int
    process: FleetProcess | None = None
    removed: bool = False


@dataclass(slots=True)
class Seats:
    """A group's seats and the processes in them.

    ``addresses`` are those in use; the caller that removes a seat removes its address.
    """

    group: FleetGroup
    start_ms: int
    draws: Draws
    made: int = 0
    addresses: set[str] = field(default_factory=set)

    def new_seat(self, at_ms: int) -> Seat:
        """Return a seat on an address that no other seat of the group now has."""
        number, self.made = self.made, self.made + 1
        if self.group.naming == ONE_FOR_ALL:
            return Seat(number, SHARED_ADDRESS, self.start_ms - DAY_MS)
        room = 1 + number % max(1, len(self.group.cluster.rooms))
        address = self._address(room)
        while address in self.addresses:
            address = self._address(room)
        self.addresses.add(address)
        uptime = self.draws.between(DAY_MS, LONGEST_UPTIME_MS)
        return Seat(number, address, min(at_ms, self.start_ms) - uptime)

    def new_process(self, seat: Seat, at_ms: int) -> FleetProcess:
        """Return the process started in this seat.

        Clustering clients without an instance name are ``ip@pid#nanotime``: new at each start. With
        an instance name (`BY_INSTANCE`: a wrapper that sets it to the pid or to a name) they return
        with the same id on another channel. BROADCASTING clients are ``ip@DEFAULT``.
        """
        pid = CONTAINER_PID if self.group.pods else self.draws.between(400, 65_000)
        instance = self._instance(seat, pid, at_ms)
        ending = "@STREAM" if self.group.settings.consumer_type == LITE_PULL else ""
        return FleetProcess(f"{seat.address}@{instance}{ending}", self.new_channel(seat))

    def new_channel(self, seat: Seat) -> str:
        """Return a connection from the seat: address and a port of the ephemeral range."""
        return f"{seat.address}:{self.draws.between(32_768, 60_999)}"

    def _instance(self, seat: Seat, pid: int, at_ms: int) -> str:
        if self.group.settings.message_model == BROADCASTING:
            return "DEFAULT"
        if self.group.naming == ONE_FOR_ALL:
            return self.group.name
        if self.group.naming == BY_INSTANCE:
            return str(CONTAINER_PID) if self.group.number % 2 else self.group.name
        nanos = (at_ms - seat.booted_ms) * NANOS_PER_MS + self.draws.between(0, NANOS_PER_MS - 1)
        return f"{pid}#{nanos}"

    def _address(self, room: int) -> str:
        return f"10.{room}.{self.draws.between(0, 255)}.{self.draws.between(1, 254)}"
