"""The tables of `fidelity`: what clients logged, compared with simulated futures."""

from typing import Final, Literal

from rebalance_core.contracts.table import Table, columns

LATENCY: Final[Literal["LATENCY"]] = "LATENCY"
"""A duration of ``latencies``."""
LAST: Final[Literal["LAST"]] = "LAST"
FIRST_ADD: Final[Literal["FIRST_ADD"]] = "FIRST_ADD"
FIRST_DROP: Final[Literal["FIRST_DROP"]] = "FIRST_DROP"
GAP: Final[Literal["GAP"]] = "GAP"
Measure = Literal["LAST", "FIRST_ADD", "FIRST_DROP", "GAP", "LATENCY"]
MEASURES: tuple[Measure, ...] = (LAST, FIRST_ADD, FIRST_DROP, GAP, LATENCY)

INSIDE: Final[Literal["INSIDE"]] = "INSIDE"
IN_RANGE: Final[Literal["IN_RANGE"]] = "IN_RANGE"
BELOW: Final[Literal["BELOW"]] = "BELOW"
ABOVE: Final[Literal["ABOVE"]] = "ABOVE"
NEVER: Final[Literal["NEVER"]] = "NEVER"
Place = Literal["INSIDE", "IN_RANGE", "BELOW", "ABOVE", "NEVER"]
PLACES: tuple[Place, ...] = (INSIDE, IN_RANGE, BELOW, ABOVE, NEVER)

AGREES: Final[Literal["AGREES"]] = "AGREES"
DIFFERS: Final[Literal["DIFFERS"]] = "DIFFERS"
UNKNOWN: Final[Literal["UNKNOWN"]] = "UNKNOWN"
Verdict = Literal["AGREES", "DIFFERS", "UNKNOWN"]
FIDELITY_VERDICTS: tuple[Verdict, ...] = (AGREES, DIFFERS, UNKNOWN)

_WHAT = """
        kind STRING event types of the change, or a kind of latencies
        measure STRING {allowed}: until the last logged client moved a queue, a client's first \
ADD or DROP, a queue's time without an owner (negative: with several), a row of latencies
"""

FIDELITY_SAMPLES = Table(
    "fidelity_samples",
    "A time that client logs show after a change, compared with the simulated futures of that "
    "change.",
    columns(
        f"""
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        {_WHAT.strip()}
        at_ms BIGINT when the change happened, or when the latency ended
        client_id? STRING the client; null: all clients with a log, or a queue
        topic? STRING the topic; null: no queue is meant
        broker_name? STRING the broker; null: no queue is meant
        queue_id? INT the queue id on that broker
        observed_ms DOUBLE observed time in milliseconds, from the change
        share DOUBLE share of the futures that have it, 0 to 1
        simulated_ms_min? DOUBLE time in these futures; null: no future has it
        simulated_ms_p5? DOUBLE time in these futures; null: no future has it
        simulated_ms_p50? DOUBLE time in these futures; null: no future has it
        simulated_ms_p95? DOUBLE time in these futures; null: no future has it
        simulated_ms_max? DOUBLE time in these futures; null: no future has it
        place STRING {{allowed}}: of the observed time: between p5 and p95, min and max, outside
        """,
        measure=MEASURES,
        place=PLACES,
    ),
)

FIDELITY = Table(
    "fidelity",
    "The position of the times of one kind in client logs among the simulated futures.",
    columns(
        f"""
        cluster STRING the RocketMQ cluster
        {_WHAT.strip()}
        samples BIGINT number of rows in fidelity_samples
        inside BIGINT samples between p5 and p95 of the futures
        in_range BIGINT samples between min and max of the futures
        observed_ms_p50? DOUBLE time in the samples; null: there are no samples
        observed_ms_p95? DOUBLE time in the samples; null: there are no samples
        simulated_ms_p50? DOUBLE time in the futures of all samples; null: there are no futures
        simulated_ms_p95? DOUBLE time in the futures of all samples; null: there are no futures
        delays STRING the basis of the simulated delays: recordings, or a fit
        verdict STRING {{allowed}}
        reason? STRING why it differs, or why this is unknown
        """,
        measure=MEASURES,
        verdict=FIDELITY_VERDICTS,
    ),
    key=("cluster", "kind", "measure"),
)

FIDELITY_TABLES = {table.name: table for table in (FIDELITY, FIDELITY_SAMPLES)}
