"""Retry vectors: whole sends with their retries, one send a fact."""

from collections.abc import Iterator
from typing import Any

from rebalance_core.model.versions import parse_version
from rebalance_core.producers.profile import profile_of
from rebalance_core.producers.send_failures import CLIENT_EXCEPTION, NO_ADDRESS, Reply
from rebalance_core.producers.send_record import Producer, ProducerSettings, SendRecord
from rebalance_core.producers.sending import send
from tests.conformance.async_send import async_rules, send_async
from tests.conformance.producer_routes import pairs
from tests.conformance.producer_steps import faults_of, read_info, read_strategy
from tests.conformance.replay_world import Json


class RecordedBrokers:
    """Answers in the order of the vector, for one send; the last one repeats."""

    def __init__(self, answers: Json) -> None:
        self._answers = {broker: list(given) for broker, given in answers.items()}

    def knows(self, broker_name: str) -> bool:
        """An answer ``no_address`` is used up by being asked."""
        known = self._answers[broker_name][0][0] != NO_ADDRESS
        if not known:
            self._next(broker_name)
        return known

    def answer(self, broker_name: str, queue_id: int, timeout_ms: int, now_ms: int) -> Reply:
        """The next one."""
        return self._next(broker_name)

    def _next(self, broker_name: str) -> Reply:
        given = self._answers[broker_name]
        return Reply(*(given.pop(0) if len(given) > 1 else given[0]))


def send_facts(scenario: Json) -> Iterator[str]:
    """One text for each send."""
    version = parse_version(scenario["version"])
    profile = profile_of(version)
    rules = async_rules(version, scenario["retry_times_async"])
    producer = Producer(
        read_strategy(scenario, profile),
        read_info(scenario, profile),
        ProducerSettings(
            scenario["retry_times"],
            scenario["retry_another_broker_when_not_store_ok"],
            frozenset(scenario["extra_retry_codes"]),
            scenario.get("max_timeout_per_request", -1),
            scenario.get("detector", False),
        ),
    )
    for number, (given, expected) in enumerate(
        zip(scenario["sends"], scenario["results"], strict=True)
    ):
        producer.now_ms += given["gap"]
        before = pairs(producer.info.queues)
        brokers = RecordedBrokers(given["brokers"])
        if given["mode"] == "async":
            record = send_async(producer, brokers, given["timeout"], rules)
        else:
            record = send(producer, brokers, given["timeout"], oneway=given["mode"] == "oneway")
        actual = _result(producer, record)
        actual |= {"queues": after} if (after := pairs(producer.info.queues)) != before else {}
        wrong = {
            key: (expected.get(key), actual.get(key))
            for key in expected.keys() | actual.keys()
            if expected.get(key) != actual.get(key)
        }
        yield f"{scenario['id']} send {number} {given}: {wrong}" if wrong else ""


def _result(producer: Producer, record: SendRecord) -> dict[str, Any]:
    filters = producer.strategy.profile.filters
    return {
        "picks": [list(pick) for pick in record.picks],
        "wire": [list(request) for request in record.requests],
        "updates": [
            [r.broker_name, r.latency_ms, r.isolation, *([r.reachable] * filters), r.at_ms]
            for r in record.reports
        ],
        "outcome": _outcome(record),
        "now": producer.now_ms,
        "faults": faults_of(producer.strategy, producer.now_ms),
    }


def _outcome(record: SendRecord) -> dict[str, Any]:
    failure = record.failure
    if failure is None:
        stored = {} if record.stored_by is None else {"broker": record.stored_by}
        return {"status": record.status, **stored}
    outcome: dict[str, Any] = {"exception": failure.java_class}
    if failure.code is not None:
        outcome["response_code"] = failure.code
    if failure.times is not None:
        outcome["times"] = failure.times
    if failure.java_class == CLIENT_EXCEPTION:
        outcome["cause"] = failure.cause
    return outcome
