"""Tables copied from a page of RocketMQ's dashboard or console, or written in Markdown.

A browser puts a tab between the cells of a copied row. The titles are those of the pages *Consumer:
Client* and *Consumer: Detail*, in English and Chinese (rocketmq-dashboard 1.0 and 2.x), and
mqadmin's own. Such a table is read as the dashboard's JSON answer with the same content.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_CLIENTS: Mapping[str, str] = {
    "clientid": "clientId", "客户端id": "clientId",
    "clientaddr": "clientAddr", "客户端地址": "clientAddr",
    "language": "language", "语言": "language",
    "version": "versionDesc", "版本": "versionDesc",
}  # fmt: skip
_SUBSCRIPTIONS: Mapping[str, str] = {
    "topic": "topic", "主题": "topic",
    "subexpression": "subString", "subscriptionexpression": "subString", "订阅表达式": "subString",
}  # fmt: skip
_QUEUES: Mapping[str, str] = {
    "topic": "topic", "主题": "topic",
    "broker": "brokerName", "brokername": "brokerName",
    "queue": "queueId", "queueid": "queueId", "qid": "queueId", "队列": "queueId",
    "brokeroffset": "brokerOffset", "代理者位点": "brokerOffset",
    "consumeroffset": "consumerOffset", "消费者位点": "consumerOffset",
    "consumerclient": "clientInfo", "clientinfo": "clientInfo", "clientip": "clientInfo",
    "消费者终端": "clientInfo",
}  # fmt: skip
"""The fields of the dashboard's answers by the titles of their columns (`_title`)."""
_REQUIRED = {
    "clients": (_CLIENTS, {"clientId", "clientAddr"}),
    "subscriptions": (_SUBSCRIPTIONS, {"topic", "subString"}),
    "queues": (_QUEUES, {"brokerName", "queueId", "brokerOffset", "consumerOffset"}),
}
_RULE = re.compile(r":?-+:?")
_TOPIC = re.compile(r"\s*(?:Topic|主题)\s*:\s*(\S+)")
_SETTING = re.compile(r"\s*(ConsumeType|MessageModel|ConsumeFromWhere)\s*:\s*(\S+)\s*$")
_NOBODY = ("", "-", "N/A")

_Row = dict[str, str]


class _Table(NamedTuple):
    """A table of one kind, with the topic named above it and its rows by field."""

    kind: str
    topic: str
    rows: list[_Row]


def console_answer(text: str, unnamed_topic: str) -> str | None:
    r"""Return the dashboard's JSON answer with the content of the tables in a text.

    Args:
        text: the text; lines around the tables are ignored.
        unnamed_topic: the topic of queues above which the text names none.

    Returns:
        The answer, or None if the text has no table of clients or of queues.

    >>> answer = console_answer("ClientId | ClientAddr\na@1 | 10.0.0.1:5", "")
    >>> json.loads(answer)["data"]["connectionSet"]
    [{'clientId': 'a@1', 'clientAddr': '10.0.0.1:5'}]
    """
    tables = list(_tables(text, unnamed_topic))
    clients = [row for table in tables if table.kind == "clients" for row in table.rows]
    queues = [table for table in tables if table.kind == "queues"]
    data: object
    if clients:
        subscribed = {
            row["topic"]: {"subString": row["subString"]}
            for table in tables
            if table.kind == "subscriptions"
            for row in table.rows
        }
        settings = map(_SETTING.match, text.splitlines())
        data = {
            "connectionSet": clients,
            "subscriptionTable": subscribed,
            **{match[1][0].lower() + match[1][1:]: match[2] for match in settings if match},
        }
    elif queues:
        data = [
            {
                "topic": topic,
                "queueStatInfoList": [
                    _queue(row) for row in table.rows if row.get("topic", table.topic) == topic
                ],
            }
            for table in queues
            for topic in dict.fromkeys(row.get("topic", table.topic) for row in table.rows)
        ]
    else:
        return None
    return json.dumps({"status": 0, "data": data}, ensure_ascii=False)


def _queue(row: _Row) -> dict[str, object]:
    numbers = ("queueId", "brokerOffset", "consumerOffset")
    queue: dict[str, object] = {**row, **{name: _whole(row[name]) for name in numbers}}
    if row.get("clientInfo") in _NOBODY:
        queue["clientInfo"] = None
    return queue


def _whole(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d{1,30}", text) else text


def _tables(text: str, unnamed_topic: str) -> Iterator[_Table]:
    """Yield the tables with their rows; a table ends at a line with more or fewer cells."""
    topic, fields = unnamed_topic, list[str]()
    table: _Table | None = None
    for line in text.splitlines():
        cells = _cells(line)
        if kind := _kind(cells):
            if table is not None:
                yield table
            titles = _REQUIRED[kind][0]
            fields = [titles.get(_title(cell), "") for cell in cells]
            table = _Table(kind, topic, [])
        elif table is not None and len(cells) == len(fields):
            if not all(map(_RULE.fullmatch, cells)):
                named = zip(fields, cells, strict=True)
                table.rows.append({field: cell for field, cell in named if field})
        elif line.strip():
            if table is not None:
                yield table
            table = None
            if len(cells) > 1 and _title(cells[0]) in ("topic", "主题"):
                topic = cells[1]
            elif named_topic := _TOPIC.match(line):
                topic = named_topic[1]
    if table is not None:
        yield table


def _kind(cells: list[str]) -> str:
    """Return the kind of table that begins with these titles; empty if they are none."""
    titles = {_title(cell) for cell in cells}
    for kind, (names, required) in _REQUIRED.items():
        if required <= {names.get(title) for title in titles}:
            return kind
    return ""


def _title(cell: str) -> str:
    return re.sub(r"[\s#]", "", cell).lower()


def _cells(line: str) -> list[str]:
    """Return the cells of a row; a row of mqadmin has none, even if tabs replaced its blanks."""
    if "\t" in line and not line.lstrip().startswith("#"):
        return [cell.strip() for cell in line.split("\t")]
    if "|" in line:
        return [cell.strip() for cell in line.strip().strip("|").split("|")]
    return []
