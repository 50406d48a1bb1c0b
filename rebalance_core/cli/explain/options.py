"""The options of `explain`, checked: every mistake is named at once."""

import argparse
from dataclasses import dataclass

from rebalance_core.cli.job import JobOptions, common_values
from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import read_instant
from rebalance_core.storage.place import place_of
from rebalance_core.strategies.pop import WHOLE_BROKER


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(JobOptions):
    """The options of `explain`."""

    ledger: str
    group: str
    queue: MessageQueue
    at_ms: int
    cluster: str | None = None


def add_explain_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `read_explain_options` checks them."""
    parser.add_argument("--ledger", metavar="DIR", help="what simulate or audit wrote")
    parser.add_argument("--group", metavar="G", help="the consumer group")
    parser.add_argument(
        "--queue",
        metavar="T/BROKER/ID",
        help="the queue, e.g. orders/broker-a/3; of a shared topic, -1 is the whole broker",
    )
    parser.add_argument("--at", metavar="TIME", help="epoch milliseconds or RFC 3339")
    parser.add_argument(
        "--cluster", metavar="C", help="needed if several clusters have a group of that name"
    )


def read_explain_options(arguments: argparse.Namespace, argv: tuple[str, ...]) -> ExplainOptions:
    """The options, or `UsageError` naming every mistake."""
    mistakes = [
        f"--{name} {form} is missing"
        for name, form in (
            ("ledger", "DIR"),
            ("group", "G"),
            ("queue", "T/BROKER/ID"),
            ("at", "TIME"),
        )
        if not getattr(arguments, name)
    ]
    if arguments.ledger:
        try:
            place_of(arguments.ledger)
        except UsageError as error:
            mistakes.append(f"--ledger {error}; copy it first")
    queue, at_ms = None, None
    if arguments.queue:
        queue = _queue(arguments.queue)
        if queue is None:
            mistakes.append(
                f"--queue {arguments.queue}: not TOPIC/BROKER/ID, e.g. orders/broker-a/3"
            )
    if arguments.at:
        try:
            at_ms = read_instant(arguments.at)
        except ValueError as error:
            mistakes.append(f"--at {arguments.at}: {error}")
    if mistakes or queue is None or at_ms is None:
        raise UsageError("\n".join(mistakes))
    return ExplainOptions(
        **common_values(arguments, argv),
        ledger=arguments.ledger,
        group=arguments.group,
        queue=queue,
        at_ms=at_ms,
        cluster=arguments.cluster,
    )


def _queue(text: str) -> MessageQueue | None:
    topic, slash, rest = text.partition("/")
    broker, second, digits = rest.rpartition("/")
    number = digits.isdecimal() and digits.isascii()
    if not (slash and second and topic and broker and (number or digits == str(WHOLE_BROKER))):
        return None
    return MessageQueue(topic, broker, int(digits))
