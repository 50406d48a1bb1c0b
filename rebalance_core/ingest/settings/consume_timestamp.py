"""The time from which a group of CONSUME_FROM_TIMESTAMP reads queues without a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.parse.text.time_zones import zone_named
from rebalance_core.ingest.rows import Row, finding
from rebalance_core.model.times import MINUTE_MS

FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
DEFAULT_AGE_MS = 30 * MINUTE_MS
"""consumeTimestamp that nobody set: half an hour before the consumer object was made."""
CREATED_BEFORE_MS = MINUTE_MS
"""A consumer is started soon after it was made."""


def consume_timestamp(
    group: str,
    pieces: Iterable[Evidence],
    members: int,
    zone_of: Callable[[str], str | None],
    context: ClusterContext,
) -> tuple[int | None, list[Row]]:
    """The one time that consumerStatus printed for the members that ask for it, else the given.

    The table has one time a group. Where members have several (that of the default is another for
    every process), none of them is right for all, and none is taken. A time whose zone is not
    said gives way to the given one.

    Args:
        group: the group.
        pieces: its evidence.
        members: how many client ids there ever were.
        zone_of: time zone of a client by its id, None if it is not said.
        context: the cluster.

    Returns:
        The time, None if it is not known or not the same for all; a finding if that is so, or if
        a time zone was assumed.
    """
    times: dict[int, str] = {}
    default = assumed = False
    for piece in pieces:
        values = piece.values
        if piece.kind != "client" or values["consume_from_where"] != FROM_TIMESTAMP:
            continue
        zone = zone_of(values.get("client_file", ""))
        at_ms = local_seconds_ms(values["consume_timestamp"], zone or context.assumed.time_zone)
        if at_ms is None:
            continue
        times[at_ms] = values["consume_timestamp"]
        assumed |= zone is None
        default |= _is_default(at_ms, values["start_ms"])
    several = len(times) > 1 or (default and members > 1)
    if len(times) == 1 and not several and not assumed:
        return next(iter(times)), []
    given = context.given.get(group, {}).get("consume_timestamp_ms")
    if given is not None:
        return given, []
    if several:
        return None, [_several(group, times, default=default)]
    if not times:
        return None, [_unknown(group)]
    ((at_ms, text),) = times.items()
    return at_ms, [_zone(group, text, context.assumed.time_zone)]


def local_seconds_ms(text: str | None, zone: str) -> int | None:
    """``yyyyMMddHHmmss`` in a zone (UtilAll.parseDate), None if it is none.

    A time before 1970, as 19700101000000 is in the east, gives 0: no message is older than either.

    >>> local_seconds_ms("20261121030558", "UTC")
    1795230358000
    """
    try:
        local = datetime.strptime(text or "", "%Y%m%d%H%M%S")  # noqa: DTZ007  # the zone follows
    except ValueError:
        return None
    return max(0, int(local.replace(tzinfo=zone_named(zone)).timestamp()) * 1000)


def _is_default(at_ms: int, start_ms: int | None) -> bool:
    return start_ms is not None and 0 <= start_ms - DEFAULT_AGE_MS - at_ms <= CREATED_BEFORE_MS


def _several(group: str, times: dict[int, str], *, default: bool) -> Row:
    why = "half an hour before each of its processes was made" if default else "several times"
    return finding(
        "INGEST_TIMESTAMP_UNKNOWN",
        f"Members of {group} start at {why}: where new owners of queues without a commit start is "
        "UNKNOWN.",
        "Set one consumeTimestamp for all members, or name consume_timestamp_ms in the "
        "collection's consumer_groups.jsonl.",
        consumer_group=group,
        evidence={"consume_timestamp": ", ".join(times[at_ms] for at_ms in sorted(times))},
    )


def _zone(group: str, text: str, zone: str) -> Row:
    return finding(
        "INGEST_ASSUMED",
        f"consumeTimestamp {text} of {group} is local time of its clients; taken as {zone}.",
        "Name time_zones of the clients' folders in collection.toml, or consume_timestamp_ms in "
        "the collection's consumer_groups.jsonl.",
        consumer_group=group,
        evidence={"consume_timestamp": text},
    )


def _unknown(group: str) -> Row:
    return finding(
        "INGEST_TIMESTAMP_UNKNOWN",
        f"{group} starts at a time that no file of the collection tells: where new owners of "
        "queues without a commit start is UNKNOWN.",
        "Collect consumerStatus of the group, or name consume_timestamp_ms in the collection's "
        "consumer_groups.jsonl.",
        consumer_group=group,
    )
