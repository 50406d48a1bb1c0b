"""Reasons why something about a group is unknown, and the file or command that would settle it."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_core.model.timeline import Unknown
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ASSIGNED, LOG_BEGINS, LOG_ENDED, NOT_COVERED

NAME_SERVERS = "the name servers"
"""The host named when all name servers' logs lack the evidence."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A continuously written file that may have gaps.

    Attributes:
        name: its name in messages.
        host: the broker or client folder that it belongs to.
        remedy: the evidence that would supply the missing part; empty: depends on the part.
    """

    name: str
    host: str
    remedy: str = ""

    @property
    def _text(self) -> str:
        return f"the {self.name} of {self.host}"

    def begins(self, at_ms: int | None) -> Unknown:
        """Return the gap before the file begins; None: its beginning is unknown."""
        if at_ms is None:
            return self._lacks(LOG_BEGINS, f"{self._text} {NO_LOG}", "")
        why = f"{self._text} that was collected begins at {utc(at_ms)}"
        return self._lacks(
            LOG_BEGINS,
            why,
            f"Also copy the older files of {self._text} (otherdays/), or dump consumerConnection "
            f"-b {self.host}.",
        )

    def ended(self, at_ms: int) -> Unknown:
        """Return the gap after the file ends."""
        return self._lacks(
            LOG_ENDED,
            f"{self._text} that was collected ends at {utc(at_ms)}",
            f"Copy {self._text} after the dumps, up to its last line.",
        )

    def silent(self, from_ms: int, to_ms: int | None) -> Unknown:
        """Return the gap between two lines of the file; None: up to its end."""
        until = "on" if to_ms is None else f"to {utc(to_ms)}"
        return self._lacks(
            NOT_COVERED, f"{self._text} has no lines from {utc(from_ms)} {until}", ""
        )

    def missing(self) -> Unknown:
        """Return the gap that the missing file leaves."""
        return self._lacks(NOT_COVERED, f"{self._text} {NO_LOG}", "")

    def _lacks(self, reason: str, why: str, remedy: str) -> Unknown:
        all_files = f"Copy {self._text}, with all rotated files (otherdays/)."
        return Unknown(reason, self.host, why, self.remedy or remedy or all_files)


NO_LOG = "was not collected"
"""How the reason for an uncertain finding ends if a whole log is missing."""


def broker_log(broker: str) -> LogFile:
    """Return a broker's own log."""
    return LogFile("broker.log", broker)


def pop_log(broker: str) -> LogFile:
    """Return a broker's pop.log, whose last line is that of its revive service."""
    return LogFile("pop.log", broker, f"Copy pop.log of {broker} up to its last line, at INFO.")


def name_server_log(server: str = NAME_SERVERS) -> LogFile:
    """Return the log of a name server, or those of all."""
    which = "every name server" if server == NAME_SERVERS else server
    return LogFile("log", server, f"Copy namesrv.log of {which}, with all rotated files.")


def client_log(folder: str) -> LogFile:
    """Return the log of a client."""
    remedy = f"Copy all rocketmq_client.log files of {folder} (other_days/) as well."
    return LogFile("rocketmq_client.log", folder, remedy)


def client_unseen(client: str, at_ms: int) -> Unknown:
    """Return the gap after the last sign of a client of the group."""
    return Unknown(
        LOG_ENDED,
        client,
        f"no file shows {client} as a client of the group after {utc(at_ms)}",
        client_log(client).remedy,
    )


def proxy_unseen(broker: str, first_ms: int, last_ms: int) -> Unknown:
    """Return the gap for a group whose members no broker lists while messages are popped."""
    return Unknown(
        NOT_COVERED,
        broker,
        f"the revive log of {broker} grew between {utc(first_ms)} and {utc(last_ms)}, so messages "
        "are popped, and brokers do not list the clients of a proxy",
        "Copy the logs of the proxies; if the cluster has none, those of the brokers.",
    )


def member_unnamed(broker: str, at_ms: int) -> Unknown:
    """Return the gap for a group with members that a broker knew but no file names."""
    why = f"{broker} knew members of the group at {utc(at_ms)}, and no file names one since"
    remedy = f"Collect again with a broker.log of {broker} that goes back further, and its lists."
    return Unknown(NOT_COVERED, broker, why, remedy)


def offset_store(broker: str) -> LogFile:
    """Return the copies of a broker's consumerOffset.json."""
    remedy = f"Copy config/consumerOffset.json of {broker} every few minutes."
    return LogFile("consumerOffset.json", broker, remedy)


def topic_store(broker: str) -> LogFile:
    """Return the copies of a broker's topics.json."""
    remedy = f"Copy topics.json of {broker}, or dump topicRoute of the group's topics."
    return LogFile("topics.json", broker, remedy)


def refused_lines(broker: str) -> Unknown:
    """Return the gap left by refused lines in a broker's log."""
    return Unknown(
        NOT_COVERED,
        broker,
        f"ingest refused lines of the broker.log of {broker}, which may show members",
        f"Copy the broker.log of {broker} again, unchanged, or dump consumerConnection of the "
        "group.",
    )


def queues_unlisted(broker: str) -> Unknown:
    """Return the gap for a topic whose queues on a broker appear only in dumps."""
    return Unknown(
        NOT_COVERED,
        broker,
        f"dumps show queues of a topic on {broker} that no other file names",
        topic_store(broker).remedy,
    )


def strategy_unstated(client_id: str) -> Unknown:
    """Return the gap for a member whose strategy is in no file."""
    return Unknown(
        NOT_COVERED,
        client_id,
        "no file shows the strategy of some members",
        f"Dump consumerStatus -i {client_id}, or collect its rocketmq_client.log.",
    )


def ids_masked(client_id: str) -> Unknown:
    """Return the gap for members whose ids are the same because a tool masked a part of them."""
    return Unknown(
        NOT_COVERED,
        client_id,
        f"a part of {client_id} is masked, and several processes may have ids that differ there",
        "Redact with `rebalance collect --redact`, which keeps ids apart.",
    )


def return_unlogged(broker: str, down_ms: int) -> Unknown:
    """Return the gap for a broker that went down but continues to run."""
    return Unknown(
        NOT_COVERED,
        broker,
        f"{broker} went down at {utc(down_ms)} and runs again, and no log shows its return",
        broker_log(broker).missing().remedy,
    )


def stop_unlogged(broker: str, up_ms: int) -> Unknown:
    """Return the gap for a broker that came back without a logged start of its outage."""
    return Unknown(
        NOT_COVERED,
        broker,
        f"{broker} was back at {utc(up_ms)}, and no log shows when it went down",
        broker_log(broker).missing().remedy,
    )


def answer_outdated(topic: str, broker: str) -> Unknown:
    """Return the gap if two dumps in one round disagree on a value that cannot decrease."""
    return Unknown(
        NOT_COVERED,
        broker,
        f"both dumps belong to one round, no file shows a start of {broker} or a change of {topic} "
        "between them, and one may be an old answer",
        f"Dump topicStatus -t {topic} again.",
    )


def request_mode_unstated(client_id: str, group: str) -> Unknown:
    """Return the gap for a member that holds a popped queue."""
    return Unknown(
        NOT_COVERED,
        client_id,
        f"no file shows whether {client_id} pops or pulls, and it holds a queue that is popped",
        f"Dump consumerStatus -g {group}, which shows clientRebalance.",
    )


def request_mode_undated(topic: str) -> Unknown:
    """Return the gap for a topic whose request mode changed without a log line."""
    return Unknown(
        NOT_COVERED,
        "",
        f"no file shows whether {topic} was popped or pulled then",
        "Copy config/messageRequestMode.json of the brokers when the group is dumped.",
    )


def route_unshown(topic: str, broker: str, what: str) -> Unknown:
    """Return the gap for a topic's queues on a broker; ``what``: in words."""
    remedy = f"Dump topicRoute -t {topic}, or copy topics.json of {broker}."
    return Unknown(NOT_COVERED, broker, what, remedy)


def owners_unshown(group: str, what: str) -> Unknown:
    """Return the gap for the owners of a group's queues; ``what``: in words."""
    remedy = f"Dump consumerProgress -s true -g {group} and keep its whole output."
    return Unknown(NOT_COVERED, "", what, remedy)


_WHOLE_LOGS = "Collect broker.log of every broker, with all rotated files, and dump again."

MEMBERS_UNLOGGED = Unknown(
    NOT_COVERED,
    "",
    "members came, went or changed their topics, and no log records it",
    _WHOLE_LOGS,
)
CLOCK_OFF = Unknown(
    NOT_COVERED,
    "",
    "a broker's clock is off by an unknown amount",
    "Name the broker's time zone in collection.toml, or synchronise its clock.",
)
"""One broker's times cannot be compared with those of another."""
CLIENT_CLOCK_UNKNOWN = Unknown(
    NOT_COVERED,
    "",
    "the clock of a client may be off: no file compares it with the brokers' clocks",
    "Name the client's time zone in collection.toml, and collect the logs of its brokers.",
)
NOT_ASKED = Unknown(
    NOT_COVERED,
    "",
    "no answer of a broker shows whether a member is online",
    "Dump consumerConnection of the group, asked of every broker.",
)
QUEUES_CREATED = Unknown(
    NOT_COVERED, "", "no log records when the queues were created", _WHOLE_LOGS
)
"""Queues that only a dump or store shows may be older than that file."""
QUEUES_BEFORE = Unknown(
    NOT_COVERED,
    "",
    "no dump shows the queues before the group existed",
    "Dump topicStatus of the group's topics every night, before new groups start.",
)
"""What a queue held before its first observation is unknown."""
TIMEOUTS_UNLOGGED = Unknown(
    NOT_COVERED,
    "",
    "no log of a member shows whether popped messages time out before the listener gets them",
    "Copy the rocketmq_client.log files of the members.",
)
MAY_ASSIGN = Unknown(
    ASSIGNED,
    "",
    "no file shows whether every lite pull member subscribes, or assigns queues to itself",
    "Dump consumerStatus of the group: the members' properties show it.",
)
