"""``docs/audit-rules.md``, generated: ``python -m rebalance_core.audit.rules_page``."""

from collections.abc import Iterator

from rebalance_core.audit.causes import LINKS
from rebalance_core.audit.group_snapshot import BROKER, QUEUE, Rule
from rebalance_core.audit.registry import ALL_RULES
from rebalance_core.audit.subjects import SUBJECTS
from rebalance_core.contracts.progress import PROGRESS_REASONS
from rebalance_core.ingest.rows import FINDING_IDS, OF_A_BROKER
from rebalance_core.model.verdicts import HEALTH, PROGRESS, PROGRESS_UNKNOWN, REASONS, VERDICTS

NOT_SEEN = (
    (
        "alternating expressions (tags) that differ only in the 5.x proxy's view",
        "no file of a broker has a gRPC client's subscription",
        "the proxy's log",
    ),
    (
        "which gRPC client takes which messages, for how long it holds them, whether its handle "
        "outlives the proxy that renewed it (#10278), or whether it asks at all "
        "(rocketmq-clients#1168)",
        "a proxy logs neither receives nor handles, and `consumerStatus` does not ask its clients",
        "the application's own log",
    ),
    (
        "which messages of a group wait at a broker to be delivered again (how many are popped "
        "and how many acknowledgements came: POP_COUNTS, from a broker's metrics, 5.1 on)",
        "pop.log and the offsets of the revive queues count the checkpoints of all groups "
        "together; `rocketmq_pop_revive_out_message_total` counts an entry in each pass that reads "
        "it again, so no difference of counters shows what waits",
        "`enablePopLog=true` from then on",
    ),
    (
        "how many receives of a group wait at a broker, or returned nothing because another pop "
        "had locked the queue or a FIFO queue was blocked (ORDER_BLOCK shows the block)",
        "pop.log adds up the waiting requests of all groups (`tmpTotalSize`), a refused receive "
        "leaves no line (`PopMessageProcessor`), and no metric of 5.1 to 5.5 counts either",
        "the request `POLLING_INFO`, for which mqadmin has no command",
    ),
    (
        "a popped message whose checkpoint or acknowledgement was lost (#7914, #10276, #9583), or "
        "that was delivered again although it was acknowledged (#7724)",
        "the broker logs single messages only with `enablePopLog=true`",
        "pop.log with `enablePopLog=true`; `queryMsgByUniqueKey` shows copies in the retry topic",
    ),
    (
        "why an unacknowledged message is not delivered again although the revive service keeps "
        "up (rocketmq-clients#1344, open)",
        "no file shows which queues a client asks next, or that its pop read the retry topic; "
        "REVIVE_STUCK, REVIVE_BEHIND and RECEIVE_STARVES name the causes that files do show",
        "`queryMsgByUniqueKey` (a copy in the retry topic?) and the application's own log",
    ),
    (
        "messages popped from a queue that the Java client (5.0.0 to 5.1.4) dropped before the "
        "first answer (#7570, fixed in 5.2.0); they are delivered again after the invisible time",
        "the client logs `because pop is pause` and takes the queue back in the same pass; no line "
        "names a message",
        "clients from 5.2.0 on",
    ),
    (
        "what POP costs a broker: how often pops read the retry topic (#8657, #10058), counts that "
        "each call repeats (#9123), the memory of many shared queues (#3521), requests of many "
        "clients that finish a backlog at once (rocketmq-clients#1308)",
        "no file counts requests or their time; a dashboard of the broker's metrics does",
        "`rocketmq_rpc_latency`, `rocketmq_pop_buffer_scan_time_consume` and the heap over a day",
    ),
    (
        "a channel kept alive by another group of the same process (#10435)",
        "it looks like any live member",
        "the application's own list of running consumers",
    ),
    (
        "a consume lock held by a hung listener",
        "only its effect is visible: CONSUMER_BLOCKED, STUCK_ORDER_LOCK",
        "`consumerStatus -s` (stacks), two minutes apart",
    ),
    (
        "messages skipped because of their tags, or by a filter that passes none (it never causes "
        "COMMIT_STANDS_STILL)",
        "offsets advance as if a client had read them: a pull of which nothing passes the broker's "
        "filter has status NO_MATCHED_MSG, and with an empty cache the client commits its "
        "`nextBeginOffset` (`correctTagsOffset`, read in 5.3.3); otherwise a message in the cache "
        "holds the commit back",
        "`INCONSISTENT_TAGS` shows the cause; `queryMsgById` a message's fate",
    ),
    (
        "a standstill, by one round of mqadmin",
        "`LastTime` is when the last message before the commit was stored, not when it was "
        "committed (AdminBrokerProcessor, offset - 1); a `Last Updated` long ago shows that all "
        "unread messages have waited since, but a slow group looks the same",
        "`consumerProgress` again, two minutes later; the commits in the client's log",
    ),
    (
        "the commits of a Node client (ali-ons)",
        "its default logger drops them; those of other loggers name no group (3.12.0)",
        "consumerOffset.json or consumerProgress, twice",
    ),
    (
        "whose pulls a broker refuses, by the log of a client of 4.9 where the broker's words name "
        "no group (CODE 1 and 16 name it)",
        "`execute the pull request exception` has no group, queue or address before 5.x",
        "broker.log, whose line `the consumer's group info not exist` names it; a client of 5.x",
    ),
    (
        "broadcasting offsets lost with a container's disk",
        "a client id with a pid changes at every start, with or without its file",
        "`rocketmq_offsets/` from before and after the restart",
    ),
    (
        "routes that differ between name servers whose logs were not collected",
        "`topicRoute` queries only one of them",
        "`topicRoute -n` of each name server, or its log",
    ),
)
"""What the files cannot show: the pathology, the reason, and the evidence that would show it."""


def rules_page() -> str:
    """Return the whole page as Markdown."""
    by_owners = ", ".join(f"`{rule.rule_id}`" for rule in ALL_RULES if rule.by_owners)
    states = ", ".join(f"`{rule.rule_id}`" for rule in ALL_RULES if rule.state)
    lines = [
        "# Audit rules",
        "",
        "Generated by `make docs` from `rebalance_core/audit/`; do not edit. The meaning of an id "
        "never changes. Whatever its rule's severity, a finding is INFO if a logged cause explains "
        "it, if it has healed, or if it ended before the audited night. The following rules find "
        "states; once a state has ended, its finding is INFO and gives the time of its end and the "
        f"evidence for it (`ended_by`): {states}.",
        "",
        "## The comparison",
        "",
        "The audit compares each dump that shows who holds a queue with the ledger at that time. "
        "While a change is under way, from its earliest to its latest moment, a member may know "
        "the cluster before or after the change and allocates accordingly, so a holder differs "
        "only if it fits none of these states. `group_verdicts` has one verdict per group: the "
        "first that applies of DIFFERS, UNSTABLE, SHARED and EQUAL.",
        "",
        "| verdict | meaning |",
        "|---|---|",
        *(f"| `{verdict}` | {meaning} |" for verdict, meaning in VERDICTS.items()),
        "",
        "| reason of `UNKNOWN` | meaning |",
        "|---|---|",
        *(f"| `{reason}` | {meaning} |" for reason, meaning in REASONS.items()),
        "",
        "`health` summarises in one word what matters on call:",
        "",
        "| health | meaning |",
        "|---|---|",
        *(f"| `{word}` | {meaning} |" for word, meaning in HEALTH.items()),
        "",
        "EQUAL concerns only owners. `progress` states whether the group reads the queues that it "
        "holds, according to `queue_progress`; the worst of its queues decides:",
        "",
        "| progress | meaning |",
        "|---|---|",
        *(f"| `{word}` | {meaning} |" for word, meaning in PROGRESS.items()),
        "",
        "| reason of an unknown progress or a bound | meaning |",
        "|---|---|",
        *(f"| `{reason}` | {meaning} |" for reason, meaning in PROGRESS_REASONS.items()),
        *(f"| `{reason}` | {meaning} |" for reason, meaning in PROGRESS_UNKNOWN.items()),
        "",
        "Where members share queues (`pop_reach`), the audit compares a client's `#Consumer Pop "
        "Detail#` with the queues that it may pop, and its process queues with those that it "
        "pulls. Such a group is UNKNOWN (`NO_DUMP`) if the last round of dumps has no "
        "`consumerStatus`.",
        "",
        "Groups of RocketMQ's own brokers, proxies and tools (`CID_RMQ_SYS_…`, "
        "`CID_DefaultHeartBeatSyncerTopic`) are not judged.",
        "",
        "## The same finding in two runs",
        "",
        "`fingerprint` of `findings` is a hash of cluster, rule, group and topic, for "
        f"{_about(BROKER)} also of the broker, for {_about(QUEUE)} also of the queue, for "
        "`COLLECTION_INCOMPLETE` also of what is missing (`lacks` in its evidence). Clients do not "
        "count, because a restarted client has a new id. A missing finding is gone only if the run "
        "looked for it ([states](operations.md#an-audit-run-step-by-step)).",
        "",
        "## One cause, several findings",
        "",
        "`caused_by` of `findings` is the fingerprint of the finding's cause; page and summary "
        "show the finding below its cause. The audit names a cause only if it is the only finding "
        "that fits: the same subject at the same time, and evidence for it.",
        "",
        "| cause | what follows from it | in common |",
        "|---|---|---|",
        *_causes(),
        "",
        "## Rules",
        "",
        "A rule reads the tables and [facts](data-dictionary.md#observed_facts) in the column "
        "*evidence*, and *subjects* during the time of a finding, from files that "
        "[cover](data-dictionary.md#coverage) that time:",
        "",
        "| subject | what it is |",
        "|---|---|",
        *(f"| {subject.name} | {subject.meaning} |" for subject in SUBJECTS),
        "",
        "If a subject is unknown at that time, or members came or went unlogged, the finding is "
        "INFO with the reason (`not_covered`: LOG_BEGINS, LOG_ENDED, NOT_COVERED), and its remedy "
        "names what to collect. Such findings make the run incomplete: one "
        "`COLLECTION_INCOMPLETE` per reason names their groups and rules. While a broker's clock "
        "is off by an unknown amount, results that compare the times of brokers are unknown. "
        "The members at the end (if the last round of lists agrees with the logs), a client id "
        "that a list has twice, and a CONFIG list remain known.",
        "",
        "Rules about expected owners report nothing on a group that is UNKNOWN for its "
        f"`STRATEGY`: {by_owners}.",
        "",
        "| finding | meaning | evidence | what to do |",
        "|---|---|---|---|",
        *map(_row, ALL_RULES),
        "",
        "## Findings of the collection's files",
        "",
        "What [ingest](ingest.md) reports of the files before any rule reads them.",
        "",
        "| finding | meaning |",
        "|---|---|",
        *(f"| `{rule_id}` | {meaning} |" for rule_id, meaning in sorted(FINDING_IDS.items())),
        "",
        "## Known issues",
        "",
        "Defects of RocketMQ and of its clients that may explain a finding. "
        "[known-issues.toml](known-issues.toml) lists the findings, versions, symptom and remedy "
        "of each. A finding names a thread in its evidence (`known`) if all conditions are met: "
        "likely, not proven.",
        "",
        "## What the files cannot show",
        "",
        "| pathology | why | what would show it |",
        "|---|---|---|",
        *(f"| {what} | {why} | {dump} |" for what, why, dump in NOT_SEEN),
    ]
    return "\n".join(lines) + "\n"


def _causes() -> Iterator[str]:
    """Yield a row for each cause, with the evidence that it shares with its consequences."""
    by_cause: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for link in LINKS:
        by_cause.setdefault((link.cause, link.same), []).append(f"`{link.consequence}`")
    for (cause, columns), consequences in by_cause.items():
        same = ", ".join(name.removeprefix("consumer_") for name in columns)
        what = "the other groups' findings" if consequences == [f"`{cause}`"] else ""
        yield f"| `{cause}` | {what or ', '.join(consequences)} | {same} |"


def _about(what: str) -> str:
    rules = [rule.rule_id for rule in ALL_RULES if rule.about == what]
    ingested = sorted(OF_A_BROKER) if what == BROKER else []
    return ", ".join(f"`{rule_id}`" for rule_id in (*rules, *ingested))


def _row(rule: Rule) -> str:
    evidence = "; ".join(
        filter(None, (rule.seen_by, ", ".join(subject.name for subject in rule.reads)))
    )
    cells = (rule.meaning, evidence, rule.remedy)
    text = " | ".join(cell.replace("|", "\\|") for cell in cells)
    return f"| `{rule.rule_id}` {rule.severity} | {text} |"


if __name__ == "__main__":
    print(rules_page(), end="")
