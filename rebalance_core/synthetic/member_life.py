"""The life of a group: its members, its scheduled actions, and the resulting rows."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from rebalance_core.model import events
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.synthetic import group_strategies
from rebalance_core.synthetic.draws import Draws
from rebalance_core.synthetic.event_rows import FIRST_GROUP, EventRows
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import FleetGroup
from rebalance_core.synthetic.seats import FleetProcess, Seat, Seats
from rebalance_core.synthetic.topics import topic_of

Action = Callable[..., None]


@dataclass(slots=True)
class Release:
    """Settings of the deployed program; None for those of the group's row."""

    version: str | None = None
    strategy: str | None = None
    subscriptions: tuple[str, ...] | None = None


class MemberLife:
    """State of a group and its agenda, which `run` plays."""

    def __init__(self, plan: FleetPlan, group: FleetGroup, draws: Draws) -> None:
        self.plan = plan
        self.group = group
        self.draws = draws
        self.now_ms = plan.start_ms
        self.seats: list[Seat] = []
        self.release = Release()
        self.deploying_until_ms = 0
        self.rows = EventRows(group.cluster.name, FIRST_GROUP + group.number)
        self._maker = Seats(group, plan.start_ms, draws)
        self._live: set[FleetProcess] = set()
        self._agenda: list[tuple[int, int, Action, tuple[Any, ...]]] = []
        self._planned = 0

    def at(self, at_ms: int, action: Action, *arguments: Any) -> None:
        """Schedule an action; of actions at the same time, the first scheduled runs first."""
        self._planned += 1
        heappush(self._agenda, (max(at_ms, self.now_ms), self._planned, action, arguments))

    def after(self, delay_ms: int, action: Action, *arguments: Any) -> None:
        """Schedule an action ``delay_ms`` from now."""
        self.at(self.now_ms + delay_ms, action, *arguments)

    def run(self, until_ms: int) -> None:
        """Play the actions scheduled before the given instant."""
        while self._agenda and self._agenda[0][0] < until_ms:
            self.now_ms, _, action, arguments = heappop(self._agenda)
            action(*arguments)

    def running(self) -> list[Seat]:
        """Return the seats with a live process, in order of creation."""
        return [seat for seat in self.seats if seat.process is not None]

    def add_seat(self) -> Seat:
        """Add an empty seat."""
        seat = self._maker.new_seat(self.now_ms)
        self.seats.append(seat)
        return seat

    def remove_seat(self, seat: Seat) -> None:
        """Remove a seat after its process has left."""
        self.stop(seat)
        if not seat.removed:
            seat.removed = True
            self.seats.remove(seat)
            self._maker.addresses.discard(seat.address)

    def start(self, seat: Seat, detail: str | None = None) -> None:
        """Start a process in the seat, unless the seat is removed or occupied."""
        if seat.process is None and not seat.removed:
            seat.process = self._maker.new_process(seat, self.now_ms)
            self.join(seat, seat.process, detail)

    def reconnect(self, seat: Seat, client_id: str) -> FleetProcess | None:
        """Join a client on a new channel of the seat; return None if that port is taken."""
        process = FleetProcess(client_id, self._maker.new_channel(seat))
        if process in self._live or seat.removed:
            return None
        self.join(seat, process)
        return process

    def stop(self, seat: Seat, event_type: str = events.CONSUMER_LEAVE, **values: Any) -> None:
        """Stop the process in the seat, if any: it leaves or is lost."""
        process, seat.process = seat.process, None
        if process is not None:
            self.tell(process, event_type, **values)

    def join(self, seat: Seat, process: FleetProcess, detail: str | None = None) -> None:
        """Join a process with the settings of its program and its seat."""
        if process in self._live:  # the same port by chance, so the old entry leaves first
            self.tell(process, events.CONSUMER_LOST, detail="CLOSED")
        self._live.add(process)
        self._row(events.CONSUMER_JOIN, process, detail=detail, **self._own_settings(seat))

    def tell(self, process: FleetProcess, event_type: str, **values: Any) -> None:
        """Add an event about a process, if it is a member."""
        if process in self._live:
            if event_type in (events.CONSUMER_LEAVE, events.CONSUMER_LOST):
                self._live.remove(process)
            self._row(event_type, process, **values)

    def set_mode(self, mode: str) -> None:
        """Set the request mode of all topics of the group."""
        for topic in self.group.settings.subscriptions or ():
            self.rows.add(
                self.now_ms,
                events.REQUEST_MODE,
                consumer_group=self.group.name,
                topic=topic,
                detail=mode,
            )

    def _row(self, event_type: str, process: FleetProcess, **values: Any) -> None:
        self.rows.add(
            self.now_ms,
            event_type,
            consumer_group=self.group.name,
            client_id=process.client_id,
            channel_id=process.channel_id,
            **values,
        )

    def _own_settings(self, seat: Seat) -> dict[str, Any]:
        """Return the columns of a join that differ from the group's row."""
        group, release = self.group, self.release
        columns: dict[str, Any] = {"version": release.version, "strategy": release.strategy}
        columns["subscriptions"] = release.subscriptions
        if group.settings.strategy == "CONFIG" and columns["strategy"] is None:
            topics = [topic_of(self.plan, group.cluster.number, topic) for topic in group.topics]
            start_ms = self.plan.start_ms
            columns["strategy"] = group_strategies.config_text(
                group.cluster, topics, start_ms, seat.number, group.size
            )
        if not group.has_row and columns["subscriptions"] is None:
            columns["subscriptions"] = group.settings.subscriptions
        if seat.number % 2 and group.difference is not None:
            columns |= self._difference(group.difference)
        return columns

    def _difference(self, kind: str) -> dict[str, Any]:
        settings = self.group.settings
        topics = settings.subscriptions or ()
        if kind == "STRATEGY":
            return {"strategy": "AVG" if settings.strategy != "AVG" else "AVG_BY_CIRCLE"}
        if kind == "MESSAGE_MODEL":
            return {"message_model": BROADCASTING}
        if kind == "CONSUME_FROM_WHERE":
            return {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
        if len(topics) > 1:
            return {"subscriptions": topics[:-1]}
        more = 1 if self.group.topics == (0,) else 0
        other = topic_of(self.plan, self.group.cluster.number, more).name
        return {"subscriptions": tuple(sorted((*topics, other)))}
