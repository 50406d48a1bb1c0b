"""Output of mqadmin as a whole: what was asked for, how many rows came, what failed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rebalance_core.ingest.collection.collected_file import (
    EXPORT_METADATA,
    STORE_COMMANDS,
    CollectedFile,
)
from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX, is_retry_topic

EVERYTHING = ("", "all")
"""What stands for no group in the name of a ``consumerProgress`` dump."""
_NO_ROWS = (
    "no_output", "no_members", "admin_error", "group_connection", "same_subscription",
    "progress_total",
)  # fmt: skip


def dump_fact(
    file: CollectedFile, results: Collection[Fact | Unread], brokers: Collection[str]
) -> Fact:
    """The fact `dump`: command, group, topic, broker, client_id (None: not asked for), rows, error,
    and of a client's answer queues_told.

    ``rejected`` counts what was not understood: with any, a missing row may have been there.
    """
    command, argument = file.arguments[:2]
    kinds = [piece.kind for piece in results if isinstance(piece, Fact)]
    values = {
        "command": command,
        "group": None,
        "topic": None,
        "broker": None,
        "client_id": file.arguments[2] if len(file.arguments) > 2 else None,
        "rows": sum(kind not in _NO_ROWS for kind in kinds),
        "rejected": len(results) - len(kinds),
        "error": _error(results),
    }
    if command == "consumerConnection" and file.place:
        values["group"] = argument
    elif command == "consumerConnection":
        values["group"], values["broker"] = asked(argument, _subscriptions(results), brokers)
    elif command == "consumerStatus":
        values["group"] = argument
        told = [
            p.values["queues_told"] for p in results if isinstance(p, Fact) and p.kind == "client"
        ]
        values["queues_told"] = any(told) if told else None
    elif command == "consumerProgress":
        values["group"] = _group_of_progress(argument, results)
    elif command in ("topicRoute", "topicStatus"):
        values["topic"] = argument
    elif command in (*STORE_COMMANDS, EXPORT_METADATA):
        values["broker"] = asked("-" + argument, (), brokers)[1]
    return Fact("dump", file.written_ms, values, file.name)


def asked(
    argument: str, subscriptions: Iterable[tuple[str, str]], brokers: Collection[str]
) -> tuple[str, str]:
    """Group and broker of ``<group>-<broker>``; no broker if none of those known ends it.

    The group of a broker that nobody knows shows by its retry topic among the subscriptions.
    """
    ends = [broker for broker in brokers if argument.endswith("-" + broker)]
    broker = max(ends, key=len, default="")
    if broker:
        return argument[: -len(broker) - 1], broker
    retry = (topic for topic, _ in subscriptions if is_retry_topic(topic))
    groups = (topic.removeprefix(RETRY_TOPIC_PREFIX) for topic in retry)
    return next((group for group in groups if argument.startswith(group + "-")), argument), ""


def _subscriptions(results: Iterable[Fact | Unread]) -> list[tuple[str, str]]:
    facts = (piece for piece in results if isinstance(piece, Fact))
    return [pair for fact in facts for pair in fact.values.get("subscriptions") or ()]


def group_of_rows(argument: str, with_clients: bool, topic: str) -> str:
    """The group of ``consumerProgress-<group>``, ``-s-<group>`` or ``-t-<topic>-<group>``.

    Args:
        argument: what follows the command in the file's name.
        with_clients: run with ``-s true``.
        topic: of the rows.
    """
    return (argument.removeprefix("s-") if with_clients else argument).removeprefix(f"t-{topic}-")


def _group_of_progress(argument: str, results: Collection[Fact | Unread]) -> str | None:
    for piece in results:
        if isinstance(piece, Fact) and piece.kind == "queue_progress":
            v = piece.values
            return group_of_rows(argument, v["with_clients"], v["topic"])
    # without rows nothing but the name tells whether -s was given
    return None if argument in EVERYTHING else argument.removeprefix("s-")


def _error(results: Collection[Fact | Unread]) -> str:
    """Class, code and message of the failure, empty if none was printed."""
    for piece in results:
        if isinstance(piece, Fact) and piece.kind == "admin_error":
            code = piece.values["code"]
            parts = (piece.values["exception"], "" if code is None else f"CODE {code}")
            return " ".join((*filter(None, parts), piece.values["message"])).strip()
    return ""
