"""A simulated producer: its clock, its brokers' answers and its state. It performs one send at a
time.
"""

from rebalance_core.model.times import DETECTOR_ROUND_MS, ROUTE_POLL_MS
from rebalance_core.producers import draws, phases, send_failures, sending
from rebalance_core.producers.counter import Counter
from rebalance_core.producers.isolation_log import IsolationLog
from rebalance_core.producers.model import ProducerGroup, ProducerModel, Variant
from rebalance_core.producers.phases import Phase
from rebalance_core.producers.profile import profile_of
from rebalance_core.producers.publish_info import PublishInfo
from rebalance_core.producers.routes import publish_list
from rebalance_core.producers.send_failures import Reply
from rebalance_core.producers.send_record import Producer, ProducerSettings, SendRecord
from rebalance_core.producers.strategy import new_strategy
from rebalance_core.producers.tally import PhaseTally, Tally

OK_AT_ONCE = Reply(send_failures.OK, 0)
NO_TIME_LEFT = Reply(send_failures.TIMEOUT, 0)
LATE_MS = 1
"""After a full timeout, no time is left for a retry, since a real clock has moved on."""
_INTERVAL_UNIT = 1_000_000  # microseconds in a second


class SendingThread:
    """The state of one producer at a moment, and its transitions.

    ``gaps`` contains, for each broker, the number of unremarkable requests before the next
    remarkable one. Walking through sends and jumping over many of them use the same draws, so the
    results agree exactly.
    """

    def __init__(
        self, model: ProducerModel, group: ProducerGroup, number: int, variant: Variant
    ) -> None:
        self.model, self.group, self.variant = model, group, variant
        self.client_id = group.client_id(number)
        self.phases: tuple[Phase, ...] = phases.phases_of(model)
        self.tally = Tally([PhaseTally() for _ in self.phases])
        self.isolations = IsolationLog()
        self.interval_us = max(1, round(_INTERVAL_UNIT / group.sends_per_second))
        self.first_us = int(self._draw("first") * self.interval_us)
        self.gaps: dict[str, int] = {}
        self.phase_number = -1
        self.waiting: dict[str, int] = {}
        """for brokers whose disturbance is over and that have not been chosen since, when it
        ended
        """
        self._events: dict[tuple[str, int], int] = {}
        self._drawn = 0
        self._changes = phases.route_changes(model, self.client_id, ROUTE_POLL_MS)
        self._detector_ms = int(self._draw("detector") * DETECTOR_ROUND_MS) + DETECTOR_ROUND_MS
        self.producer = self._new_producer()

    @property
    def phase(self) -> Phase:
        """The current phase."""
        return self.phases[self.phase_number]

    @property
    def counts(self) -> PhaseTally:
        """The counts for the current phase."""
        return self.tally.phases[self.phase_number]

    def time_of(self, tick: int) -> int:
        """Return when a message is due, in ms from the start."""
        return (self.first_us + tick * self.interval_us) // 1000

    def first_tick(self, time_ms: int) -> int:
        """Return the first message that is due at or after this time."""
        return max(0, -((self.first_us - time_ms * 1000) // self.interval_us))

    def enter(self, now_ms: int) -> None:
        """Switch to the phase, route and detector state of this time."""
        while self.phase_number + 1 < len(self.phases) and (
            self.phases[self.phase_number + 1].from_ms <= now_ms
        ):
            self.phase_number += 1
            self._enter_phase()
        while self._changes and self._changes[0][0] <= now_ms:
            _, missing = self._changes.pop(0)
            self.producer.info = self._new_info(missing)
        self._detect(now_ms)

    def next_change(self, now_ms: int) -> int:
        """Return when the state next changes by itself: phase, route, probe or isolation."""
        times = [self.phase.to_ms]
        times += [self._changes[0][0]] if self._changes else []
        items = self.producer.strategy.faults.items.values()
        times += [item.start_ms for item in items if item.start_ms > now_ms]
        if self._detects() and any(not item.reachable for item in items):
            times.append(self._detector_ms)
        return min(times)

    def send_at(self, tick: int) -> tuple[SendRecord, int]:
        """Send the message that is due, with its retries; return the record and the next tick."""
        begin_ms = self.time_of(tick)
        self.producer.now_ms = begin_ms
        record = sending.send(self.producer, self, self.group.timeout_ms)
        self.counts.add(record, self.group.topic, begin_ms)
        self._follow(record)
        end = min(record.end_ms, self.model.length_ms)
        following = max(tick + 1, self.first_tick(end))
        self.counts.held_back += following - tick - 1
        return record, following

    def knows(self, broker_name: str) -> bool:
        """Return True for a known address; on a client, addresses outlive routes."""
        return True

    def answer(self, broker_name: str, queue_id: int, timeout_ms: int, now_ms: int) -> Reply:
        """Return an unremarkable answer until the gap is used up; even so, every answer takes
        time.
        """
        if self.gaps[broker_name] > 0:
            self.gaps[broker_name] -= 1
            return OK_AT_ONCE if timeout_ms > 0 else NO_TIME_LEFT
        number = self._events[broker_name, self.phase_number]
        answer = self.phase.behaviours[broker_name].remarkable(
            self._draw("which", broker_name, self.phase_number, number),
            self._draw("latency", broker_name, self.phase_number, number),
        )
        self._events[broker_name, self.phase_number] = number + 1
        self._draw_gap(broker_name)
        return answer

    def chose(self, broker_name: str, at_ms: int) -> None:
        """Record that the broker was chosen, which is a recovery if one was pending."""
        since = self.waiting.pop(broker_name, None)
        if since is not None:
            self.counts.recovery_ms[broker_name] = at_ms - since

    def _follow(self, record: SendRecord) -> None:
        """Apply a send's reports about brokers: recoveries, isolations."""
        faults = self.producer.strategy.faults
        for report in record.reports:
            self.chose(report.broker_name, report.at_ms - report.latency_ms)
            self.isolations.note(report, faults)
        self.isolations.forget_removed(faults, record.end_ms)

    def draws_used(self) -> dict[str, int]:
        """Count the remarkable answers drawn in this phase; those of outages are not drawn."""
        number, behaviours = self.phase_number, self.phase.behaviours
        return {b: self._events[b, number] for b, how in behaviours.items() if not how.outage}

    def _new_producer(self) -> Producer:
        group, profile = self.group, profile_of(self.variant.version)
        strategy = new_strategy(profile, self.variant.fault_tolerance, self._new_counter("worst"))
        settings = ProducerSettings(retry_times=group.retries, detector=group.detector)
        return Producer(strategy, self._new_info(frozenset()), settings, late_ms=LATE_MS)

    def _new_info(self, missing: frozenset[str]) -> PublishInfo:
        """Create a new object with a new counter, as a route change does. rocketmq.md §9.1."""
        route = self.model.route(missing)
        queues = publish_list(self.group.topic, route)
        return PublishInfo(queues, self._new_counter("index"), route)

    def _new_counter(self, kind: str) -> Counter:
        profile = profile_of(self.variant.version)

        def bits() -> int:
            self._drawn += 1
            return draws.draw_bits(self.model.seed, kind, self.client_id, self._drawn)

        return Counter(None, bits, profile.raw_seed, profile.masked_counter)

    def _enter_phase(self) -> None:
        for broker in self.phase.behaviours:
            self._events[broker, self.phase_number] = 0
            self._draw_gap(broker)
        for broker in self.phase.recovering:
            self.waiting[broker] = self.phase.from_ms

    def _draw_gap(self, broker: str) -> None:
        number = self._events[broker, self.phase_number]
        u = self._draw("gap", broker, self.phase_number, number)
        self.gaps[broker] = self.phase.behaviours[broker].gap(u)

    def _detects(self) -> bool:
        return self.group.detector and self.producer.strategy.profile.filters

    def _detect(self, now_ms: int) -> None:
        """Probe as often as rounds were due; a broker that answers at all is alive."""
        while self._detector_ms <= now_ms:
            if self._detects():
                alive = {b for b, how in self.phase.behaviours.items() if how.outage is None}
                self.producer.strategy.faults.detect(
                    self.phase.behaviours, alive.__contains__, self._detector_ms
                )
            self._detector_ms += DETECTOR_ROUND_MS

    def _draw(self, *ids: str | int) -> float:
        return draws.draw(self.model.seed, self.client_id, *ids)
