"""The definition of a client profile: how clients differ from Java's."""

from dataclasses import dataclass

from rebalance_core.model import times
from rebalance_core.model.languages import (
    JAVA,
)

JAVA_FAMILY, GO_FAMILY, AVG_ONLY = "JAVA", "GO", "AVG_ONLY"
"""Which strategies a client has: Java's, Go's own with the same names, or only AVG."""
UTF16, BYTES, CULTURE = "UTF16", "BYTES", "CULTURE"
"""How a client sorts ids and queues: like Java, by the bytes of UTF-8, or by its host's culture."""
KEEP, DROP, FREEZE = "KEEP", "DROP", "FREEZE"
UNLOCKED, KEPT, NO_LOCKS = "UNLOCKED", "KEPT", "NONE"

AS_JAVA = "AS_JAVA"
"""Start: without a commit the mode decides; without an answer the queue is not taken."""
NEVER_WITHOUT_COMMIT = "NEVER_WITHOUT_COMMIT"
"""Start: a queue without a commit is not taken, and each pass asks again."""
NO_ANSWER_IS_NO_COMMIT = "NO_ANSWER_IS_NO_COMMIT"
"""Start: any failed query counts as no commit, so the mode decides."""
ANOTHER = "ANOTHER"
"""Start: by its own rules, or those of an unknown release."""

KEPT_LOCK_MS = (times.BROKER_LOCK_LIFE_MS - times.LOCK_RENEWAL_MS, times.BROKER_LOCK_LIFE_MS)
"""How long a lock remains that its holder keeps after it gives up the queue, at least and at most:
60 s after its last lockAll, which runs every 20 s."""


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """The behaviour of the clients of one library and range of releases; by default that of Java's
    client.

    Attributes:
        language: `JAVA`, or the language whose client it is (of Python's, which is C++: `CPP`).
        releases: The first and the last release, both included; None: open end, or not known.
        strategies: `JAVA_FAMILY`, `GO_FAMILY`, `AVG_ONLY`; see `strategies.texts.own_strategy`.
        strategies_run: Names of those that were run; None: all. Which queues a member takes by any
            other is unknown.
        order: `UTF16`, `BYTES` or `CULTURE`; of ids and queues.
        empty_list: How it treats its queues when a broker answers that the group has no
            consumer: `KEEP` or `DROP`. Without an answer all keep them.
        no_queue: How it treats those of a topic without a readable queue: `FREEZE` (keep
            them) or `DROP`.
        ends_pass: A topic without an answer ends its pass, so that it keeps its queues of topics
            that follow by name.
        each_topic: False: it divides the queues of all its topics as one list.
        retry: It subscribes to the retry topic.
        locks: Order locks of queues that it gives up while it lives: `UNLOCKED`, `KEPT`
            (see `KEPT_LOCK_MS`) or `NO_LOCKS`.
        pass_ms: Between two passes of its own.
        notified: It runs a pass at once when a broker notifies it that members changed.
        start: `AS_JAVA`, `NEVER_WITHOUT_COMMIT`, `NO_ANSWER_IS_NO_COMMIT` or `ANOTHER`.
        starts_run: Modes whose start without a commit was run; None: all.
        reports_version: The version that brokers print is the client's release. Else it is one of
            RocketMQ's, the same in each release.
        read: Attributes that are known only from its source. They give bounds, or nothing is
            known; all others were run.
    """

    language: str = JAVA
    releases: tuple[str | None, str | None] = (None, None)
    strategies: str = JAVA_FAMILY
    strategies_run: tuple[str, ...] | None = None
    order: str = UTF16
    empty_list: str = KEEP
    no_queue: str = FREEZE
    ends_pass: bool = False
    each_topic: bool = True
    retry: bool = True
    locks: str = UNLOCKED
    pass_ms: int = times.REBALANCE_WAIT_MS
    notified: bool = True
    start: str = AS_JAVA
    starts_run: tuple[str, ...] | None = None
    reports_version: bool = True
    read: frozenset[str] = frozenset()

    def share_known(self, strategy: str) -> bool:
        """Return False if no evidence shows which queues such a member takes by a strategy text.

        Its order is its host's, or no recording has it with the strategy.

        >>> from rebalance_core.model.clients import profile_of
        >>> profile_of("NODE").share_known("AVG"), profile_of("NODE").share_known("AVG_BY_CIRCLE")
        (True, False)
        """
        run = self.strategies_run
        return self.order != CULTURE and (run is None or _name(strategy) in run)

    @property
    def may_be_doubtful(self) -> bool:
        """Rules that were only read may decide which queues such a member holds."""
        return not self.read.isdisjoint(("order", "no_queue", "locks"))

    @property
    def notice_run(self) -> bool:
        """It was seen that a notice makes it run a pass."""
        return self.notified and "notified" not in self.read

    def start_known(self, mode: str) -> bool:
        """Return True if evidence shows where such a member starts under a mode, uncommitted."""
        if "start" in self.read or self.start == ANOTHER:
            return False
        return self.starts_run is None or mode in self.starts_run


def _name(strategy: str) -> str:
    return strategy.strip().partition("(")[0]
