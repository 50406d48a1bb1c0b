"""The values of results: severities of findings, statuses of epochs and of first pulls, verdicts.

An audit has a verdict for each group and one for the whole run.
"""

from typing import Final, Literal, get_args

INFO: Final = "INFO"
WARNING: Final = "WARNING"
ERROR: Final = "ERROR"
Severity = Literal["INFO", "WARNING", "ERROR"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""In ascending order."""
WORST_FIRST = SEVERITIES[::-1]

SETTLED: Final = "SETTLED"
FROZEN: Final = "FROZEN"
EMPTY: Final = "EMPTY"
EPOCH_STATUSES = (SETTLED, FROZEN, EMPTY)

OK: Final = "OK"
FAILED: Final = "FAILED"
UNKNOWN: Final = "UNKNOWN"
START_STATUSES = (OK, FAILED, UNKNOWN)

INCOMPLETE: Final = "INCOMPLETE"
"""The verdict on a run, and the reason why a group is UNKNOWN: something was not collected."""

EQUAL: Final = "EQUAL"
SHARED: Final = "SHARED"
DIFFERS: Final = "DIFFERS"
UNSTABLE: Final = "UNSTABLE"
OFFLINE: Final = "OFFLINE"
Verdict = Literal["EQUAL", "SHARED", "DIFFERS", "UNSTABLE", "UNKNOWN", "OFFLINE"]
VERDICTS: dict[Verdict, str] = {
    EQUAL: "every observation in the last round of dumps shows the predicted owners, and no "
    "change under way moves them",
    SHARED: "as predicted; members share the queues of some topics: as far as dumps show, "
    "each member pops what the rules allow; for gRPC clients, whose queues no dump "
    "shows, the members that a proxy lists are the predicted members",
    DIFFERS: "an observation shows a holder that the queue has in none of the states that the "
    "ledger allows at that time: not at that time and, while a change is under way, neither before "
    "nor after it",
    UNSTABLE: "a change was under way during the dump and moves queues that it shows; each of "
    "them has the owner from before the change, the owner from after it, or no owner "
    "yet",
    UNKNOWN: "nothing can be compared, for the stated reason",
    OFFLINE: "no member at the end; nothing to compare",
}

Basis = Literal["LEDGER", "DUMPS"]
LEDGER: Final = "LEDGER"
DUMPS: Final = "DUMPS"
BASES: dict[Basis, str] = {
    LEDGER: "the ledger, confirmed by the brokers' logs up to the last round of dumps",
    DUMPS: "only the brokers' lists in the last round, because the logs do not cover all of the "
    "time before",
}
"""The evidence of the members on which a verdict is based."""

MOVES: Final = "MOVES"
STANDS_STILL: Final = "STANDS_STILL"
FALLS_BEHIND: Final = "FALLS_BEHIND"
IDLE: Final = "IDLE"
Progress = Literal["MOVES", "STANDS_STILL", "FALLS_BEHIND", "IDLE", "UNKNOWN"]
PROGRESS: dict[Progress, str] = {
    MOVES: "the group reads: commits move, or nothing is unread",
    STANDS_STILL: "the commit of a queue does not move while its end grows or, where no file has "
    "the end, while its holder's cache is full",
    FALLS_BEHIND: "more messages are unread than before: commits advance more slowly than ends",
    IDLE: "nothing is unread, and no message arrived",
    UNKNOWN: "the files do not show this, for the reason in `progress_reason`",
}
"""Whether a group reads the messages in its queues."""
UNREAD: Final = "UNREAD"
TWICE: Final = "TWICE"
STALLED: Final = "STALLED"
BEHIND: Final = "BEHIND"
Health = Literal["OK", "UNREAD", "TWICE", "STALLED", "BEHIND", "IDLE", "OFFLINE", "UNKNOWN"]
HEALTH: dict[Health, str] = {
    OK: "each queue has a member that reads it, and commits move",
    UNREAD: "no member reads some queues",
    TWICE: "two processes read the same queues",
    STALLED: "a member holds queues and does not finish their messages",
    BEHIND: "messages arrive faster than the group reads them",
    IDLE: "nothing is unread, and no message arrived",
    OFFLINE: "the group has no member",
    UNKNOWN: "the files do not show this; the verdict and `progress_reason` state the reason",
}
"""The health of a group at the end; if several values apply, the first from UNREAD to BEHIND
counts.
"""
TROUBLE: tuple[Health, ...] = (UNREAD, TWICE, STALLED, BEHIND)
"""The values of health that need attention, worst first."""
SEEN_ONCE: Final = "SEEN_ONCE"
UNCHANGED: Final = "UNCHANGED"
PROGRESS_UNKNOWN = {
    SEEN_ONCE: "messages are unread, and a single observation of the commit cannot show movement",
    UNCHANGED: "messages are unread and the commit has not moved for two minutes or more; no file "
    "shows whether messages arrived meanwhile",
}
"""Why progress is unknown, besides the reasons in `queue_progress`."""

NO_DUMP: Final = "NO_DUMP"
NOT_TOLD: Final = "NOT_TOLD"
ASSIGNED: Final = "ASSIGNED"
STALE_DUMP: Final = "STALE_DUMP"
LOG_BEGINS: Final = "LOG_BEGINS"
LOG_ENDED: Final = "LOG_ENDED"
NOT_COVERED: Final = "NOT_COVERED"
STRATEGY: Final = "STRATEGY"
STATIC_TOPIC: Final = "STATIC_TOPIC"
LITE_TOPIC: Final = "LITE_TOPIC"
BROADCASTING: Final = "BROADCASTING"
SUBSCRIPTION: Final = "SUBSCRIPTION"
LANGUAGE: Final = "LANGUAGE"
IDS_REWRITTEN: Final = "IDS_REWRITTEN"
SYSTEM: Final = "SYSTEM"
COMPARISON_FAILED: Final = "COMPARISON_FAILED"
REASONS = {
    NO_DUMP: "no dump shows who holds the group's queues",
    NOT_TOLD: "the group's clients do not report which queues they hold (lite pull before 5.1.1, "
    "DefaultMQPullConsumer), or did not answer the dump",
    ASSIGNED: "no member subscribes to a topic: the application chooses the queues that each "
    "member reads (assign() of lite pull, DefaultMQPullConsumer)",
    STALE_DUMP: "the newest dump of the group's ownership is too old to show the present",
    INCOMPLETE: "a broker of the group's topics, or its answer, is missing",
    LOG_BEGINS: "a broker's log begins after the change that may explain why live owners differ",
    LOG_ENDED: "a broker's log ends before the dump, and the missing part may explain why live "
    "owners differ",
    NOT_COVERED: "the collection does not show all members or all owners",
    STRATEGY: "the group's strategy or its parameters are unknown",
    STATIC_TOPIC: "the group reads a static topic: clients divide its logical queues rather than "
    "broker queues, which is not modelled",
    LITE_TOPIC: "the group reads a topic of type LITE: clients subscribe to lite topics inside "
    "it, and which of these a client reads is not modelled",
    BROADCASTING: "nothing to compare: every member reads every queue",
    SUBSCRIPTION: "no file shows what a member subscribes to, so the owners of its queues are "
    "unknown",
    LANGUAGE: "the queues that a member's client takes are unknown: it sorts ids in its host's "
    "order, or its library has never been tested",
    IDS_REWRITTEN: "its client ids were rewritten, so their order is not the order in which "
    "members divide queues",
    SYSTEM: "the group belongs to RocketMQ's own brokers, proxies or tools and is not audited",
    COMPARISON_FAILED: ("the comparison itself failed; see the group's finding RULE_FAILED"),
}
"""Why a verdict is UNKNOWN; the text is part of the finding OWNERSHIP_UNKNOWN."""

CHANGES = ("new", "reopened", "still", "healed", "gone", "not_looked_at")
"""States of findings since the previous run."""

RunVerdict = Literal["OK", "FINDINGS", "FAILED", "INCOMPLETE"]
FINDINGS: Final = "FINDINGS"
RUN_VERDICTS: dict[RunVerdict, str] = {
    OK: "nothing above INFO is open",
    FINDINGS: "open findings, all below the severity that fails the run",
    FAILED: "open findings at or above the severity that fails the run",
    INCOMPLETE: "part of the collection is missing, so what depends on it is unknown",
}
