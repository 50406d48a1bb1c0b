"""Tables copied from a page of RocketMQ's dashboard or console, or written in Markdown.

A browser puts a tab between the cells of a copied row. The titles are those of the pages *Consumer:
Client* and *Consumer: Detail*, in English and Chinese (rocketmq-dashboard 1.0 and 2.x), and
mqadmin's own. Such a table is read as the dashboard's JSON answer with the same content.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

CLIENTS, SUBSCRIPTIONS, QUEUES = "clients", "subscriptions", "queues"
"""Kinds of tables."""
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
    CLIENTS: (_CLIENTS, {"clientId", "clientAddr"}),
    SUBSCRIPTIONS: (_SUBSCRIPTIONS, {"topic", "subString"}),
    QUEUES: (_QUEUES, {"brokerName", "queueId", "brokerOffset", "consumerOffset"}),
}
_RULE = re.compile(r":?-+:?")
_NUMBER = re.compile(r"-?(?:\d{1,30}|\d{1,3}(?:,\d{3})+)")
_TOPIC = re.compile(r"\s*(?:Topic|主题)\s*:\s*(\S+)")
_SETTING = re.compile(r"\s*(ConsumeType|MessageModel|ConsumeFromWhere)\s*:\s*(\S+)\s*$")
_NOBODY = ("", "-", "N/A")

_Row = dict[str, str]


@dataclass
class _Table:
    """A table of one kind.

    Attributes:
        kind: one of the kinds of tables.
        fields: the field of each column; empty for a column that is not read.
        between: what separates the cells: a tab or a bar.
        topic: the topic named above it.
        rows: its rows by field; a line among them that is not a row stays a text.
        strays: lines since the last row that are not rows.
    """

    kind: str
    fields: list[str]
    between: str
    topic: str
    rows: list[_Row | str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)

    def reads(self, line: str, cells: list[str]) -> bool:
        """Add the line if it is a row; return whether it is one.

        A browser's empty cells may be missing or left over at its end.
        """
        columns = shortest = len(self.fields)
        if self.between == "\t":
            required = _REQUIRED[self.kind][1]
            shortest = max(n for n, name in enumerate(self.fields, 1) if name in required)
            while len(cells) > columns and not cells[-1]:
                cells = cells[:-1]
        if not shortest <= len(cells) <= columns or self.between not in line:
            if len(cells) > 1:
                self.strays.append(line)
            return False
        if not all(map(_RULE.fullmatch, cells)):
            padded = [*cells, *[""] * (columns - len(cells))]
            named = zip(self.fields, padded, strict=True)
            self.rows += [*self.strays, {name: cell for name, cell in named if name}]
            self.strays = []
        return True


@dataclass
class _Answer:
    """Tables of one answer: of a group's clients and their subscriptions, or of its queues."""

    tables: list[_Table]

    def continues_with(self, table: _Table) -> bool:
        """Return whether the table belongs to the same answer: a page has one of each topic."""
        first = self.tables[0].kind
        if table.kind != QUEUES or first != QUEUES:
            return table.kind == SUBSCRIPTIONS and first == CLIENTS
        return table.topic not in {other.topic for other in self.tables}

    def as_json(self, settings: Mapping[str, str]) -> str:
        """Return the dashboard's answer with the same content."""
        data: object
        if self.tables[0].kind == CLIENTS:
            subscribed = [row for table in self.tables[1:] for row in table.rows]
            data = {
                "connectionSet": self.tables[0].rows,
                "subscriptionTable": {
                    row["topic"]: {"subString": row["subString"]}
                    for row in subscribed
                    if not isinstance(row, str)
                },
                **settings,
            }
        else:
            data = [
                {"topic": topic, "queueStatInfoList": list(map(_queue, rows))}
                for table in self.tables
                for topic, rows in _by_topic(table).items()
            ]
        return json.dumps({"status": 0, "data": data}, ensure_ascii=False)


def _by_topic(table: _Table) -> dict[str, list[_Row | str]]:
    """Return the rows by the topic that they or the lines above the table name."""
    topics: dict[str, list[_Row | str]] = {}
    for row in table.rows:
        topic = table.topic if isinstance(row, str) else row.get("topic") or table.topic
        topics.setdefault(topic, []).append(row)
    return topics


def console_answers(text: str, unnamed_topic: str) -> tuple[list[str], str]:
    r"""Return the dashboard's JSON answers with the content of the tables in a text.

    Args:
        text: the text.
        unnamed_topic: the topic of queues above which the text names none.

    Returns:
        The answers in order, and the lines outside of the tables.

    >>> (answer,), rest = console_answers("seen:\nClientId | ClientAddr\na@1 | 10.0.0.1:5", "")
    >>> json.loads(answer)["data"]["connectionSet"], rest
    ([{'clientId': 'a@1', 'clientAddr': '10.0.0.1:5'}], 'seen:\n')
    """
    answers: list[tuple[_Answer, dict[str, str]]] = []
    rest: list[str] = []
    topic, table = unnamed_topic, None
    for line in text.splitlines(keepends=True):
        cells = _cells(line)
        if kind := _kind(cells):
            titles = _REQUIRED[kind][0]
            fields = [titles.get(_title(cell), "") for cell in cells]
            table = _Table(kind, fields, "\t" if "\t" in line else "|", topic)
            if answers and answers[-1][0].continues_with(table):
                answers[-1][0].tables.append(table)
            elif kind == SUBSCRIPTIONS:
                table = None
                rest.append(line)
            else:
                answers.append((_Answer([table]), {}))
            continue
        named = _TOPIC.match(line)
        if len(cells) > 1 and _title(cells[0]) in ("topic", "主题"):
            topic, table = cells[1], None
        elif named:
            topic, table = named[1], None
        elif (setting := _SETTING.match(line)) and answers:
            answers[-1][1][setting[1][0].lower() + setting[1][1:]] = setting[2]
        elif table is None or not table.reads(line, cells):
            rest.append(line)
    read = [answer.as_json(settings) for answer, settings in answers if answer.tables[0].rows]
    return read, "".join(rest)


def _queue(row: _Row | str) -> dict[str, object] | str:
    if isinstance(row, str):
        return row
    numbers = ("queueId", "brokerOffset", "consumerOffset")
    queue: dict[str, object] = {**row, **{name: _whole(row[name]) for name in numbers}}
    if row.get("clientInfo") in _NOBODY:
        queue["clientInfo"] = None
    return queue


def _whole(text: str) -> int | str:
    return int(text.replace(",", "")) if _NUMBER.fullmatch(text) else text


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
    """Return the cells of a row; a row of mqadmin has none, even if tabs replaced its blanks.

    Marks of emphasis in Markdown are left out.
    """
    if "\t" in line and not line.lstrip().startswith("#"):
        return [cell.strip() for cell in line.split("\t")]
    if "|" in line:
        return [cell.strip().strip("*`") for cell in line.strip().strip("|").split("|")]
    return []
