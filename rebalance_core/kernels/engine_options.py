"""The engine's options, kept apart so that jobs without a ledger need not import the kernels."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options that cannot be derived from the rows.

    Attributes:
        queue_offsets_given: whether the table exists, so that a missing row means that nothing was
            observed.
        committed_offsets_given: whether the table exists, so that a missing row means that nothing
            was committed.
        include_retry_topics: False leaves retry topics out of everything.
        strategy_override: a strategy text that replaces the group's and every member's own.
    """

    queue_offsets_given: bool = False
    committed_offsets_given: bool = False
    include_retry_topics: bool = True
    strategy_override: str | None = None
