"""``mqadmin topicList``: the topics of all clusters and, with ``-c``, their consumer groups."""

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.column_names import is_truncated, token_of
from rebalance_core.ingest.parse.command_output import (
    Line,
    foreign,
    read_lines,
    read_output,
    whole,
)
from rebalance_core.ingest.parse.printf_rows import PrintfRow

_LISTED_TOPIC = PrintfRow("%-20s  %-64s  %s")


_NAME_WIDTH = 64


def parse_topic_list(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of one run, with or without ``-c``.

    Facts:
        topic: a topic: cluster (None without -c or if unknown), topic, topic_truncated (the name
            fills its column and may have been truncated), consumer_group (None without -c or if
            there is none), consumer_group_truncated
    """
    output = read_output(text, source)
    headed = False

    def read(line: Line) -> Fact | None:
        nonlocal headed
        if line.text.startswith("#Cluster Name") and "#Consumer Group" in line.text:
            whole(line)
            headed = True
            return None
        if line.text.startswith("#"):
            raise foreign(line, "topicList")
        cluster, topic, group = (
            _LISTED_TOPIC.read(whole(line)) if headed else ("", whole(line).strip(), "")
        )
        values = {
            "cluster": cluster or None,
            "topic": token_of(topic, "topic"),
            "topic_truncated": headed and is_truncated(topic, _NAME_WIDTH),
            "consumer_group": token_of(group, "group") if group else None,
            "consumer_group_truncated": is_truncated(group, _NAME_WIDTH),
        }
        return Fact("topic", None, values, line.source)

    return [*read_lines(output.lines, read), *output.others]
