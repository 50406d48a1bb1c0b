"""Client profiles: how the clients of other libraries differ from Java's."""

from dataclasses import dataclass

from rebalance_core.model import times
from rebalance_core.model.languages import (
    JAVA,
)

JAVA_FAMILY, GO_FAMILY, AVG_ONLY = "JAVA", "GO", "AVG_ONLY"
"""The strategies that a client has: Java's, Go's own under the same names, or only AVG."""
UTF16, BYTES, CULTURE = "UTF16", "BYTES", "CULTURE"
"""How a client sorts ids and queues: like Java, by UTF-8 bytes, or by its host's culture."""
KEEP, DROP, FREEZE = "KEEP", "DROP", "FREEZE"
UNLOCKED, KEPT, NO_LOCKS = "UNLOCKED", "KEPT", "NONE"

AS_JAVA = "AS_JAVA"
"""Start: without a commit, the mode decides; without an answer, the client does not take the
queue.
"""
NEVER_WITHOUT_COMMIT = "NEVER_WITHOUT_COMMIT"
"""Start: the client does not take a queue without a commit, and each pass queries again."""
NO_ANSWER_IS_NO_COMMIT = "NO_ANSWER_IS_NO_COMMIT"
"""Start: any failed query counts as no commit, so the mode decides."""
ANOTHER = "ANOTHER"
"""Start: the client follows rules of its own, or those of an unknown release."""

KEPT_LOCK_MS = (times.BROKER_LOCK_LIFE_MS - times.LOCK_RENEWAL_MS, times.BROKER_LOCK_LIFE_MS)
"""The shortest and longest time that a lock outlives its queue if the holder does not release it:
it expires 60 s after the last lockAll, which runs every 20 s.
"""


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """How the clients of a library behave in a range of releases; the defaults are those of Java's
    client.

    Attributes:
        language: `JAVA`, or the language of the client (`CPP` for Python's, which wraps C++).
        releases: The first and the last release, inclusive; None if open or unknown.
        strategies: `JAVA_FAMILY`, `GO_FAMILY`, `AVG_ONLY`; see `strategies.texts.own_strategy`.
        strategies_run: Names of the strategies that were tested; None for all. The queues that a
            member takes under any other are unknown.
        order: How it sorts ids and queues: `UTF16`, `BYTES` or `CULTURE`.
        empty_list: What it does with its queues when a broker answers that the group has no
            consumer: `KEEP` or `DROP`. Without an answer, all clients keep them.
        no_queue: What it does with its queues of a topic without a readable queue: `FREEZE` (keep
            them) or `DROP`.
        ends_pass: Whether a topic without an answer ends its pass, so that it keeps its queues of
            the topics that follow in order of name.
        each_topic: Whether it allocates each topic separately, rather than the queues of all topics
            as one list.
        retry: Whether it subscribes to the retry topic.
        locks: What it does with the order locks of queues that it gives up while running:
            `UNLOCKED`, `KEPT` (see `KEPT_LOCK_MS`) or `NO_LOCKS`.
        pass_ms: The time between two periodic passes.
        notified: Whether it runs a pass at once when a broker notifies it that members changed.
        start: `AS_JAVA`, `NEVER_WITHOUT_COMMIT`, `NO_ANSWER_IS_NO_COMMIT` or `ANOTHER`.
        starts_run: Modes whose start without a commit was tested; None for all.
        reports_version: Whether the version that brokers print is the client's release. Otherwise
            it is a RocketMQ version, the same in every release.
        read: Attributes known only from source code, which yield bounds at best; all others were
            tested.
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
        """Return whether it is known which queues such a member takes under a strategy text.

        It is unknown if the order depends on the host, or if no recording shows the client with the
        strategy.

        >>> from rebalance_core.model.clients import profile_of
        >>> profile_of("NODE").share_known("AVG"), profile_of("NODE").share_known("AVG_BY_CIRCLE")
        (True, False)
        """
        run = self.strategies_run
        return self.order != CULTURE and (run is None or _name(strategy) in run)

    @property
    def may_be_doubtful(self) -> bool:
        """Whether rules known only from source code may determine the queues of such a member."""
        return not self.read.isdisjoint(("order", "no_queue", "locks"))

    @property
    def notice_run(self) -> bool:
        """Whether a test showed that a notice triggers a pass."""
        return self.notified and "notified" not in self.read

    def start_known(self, mode: str) -> bool:
        """Return whether it is known where such a member starts under a mode without a commit."""
        if "start" in self.read or self.start == ANOTHER:
            return False
        return self.starts_run is None or mode in self.starts_run


def _name(strategy: str) -> str:
    return strategy.strip().partition("(")[0]
