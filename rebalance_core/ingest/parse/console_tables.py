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
_CLIENTS = {
    "clientId": ("clientid", "客户端id"),
    "clientAddr": ("clientaddr", "客户端地址"),
    "language": ("language", "语言"),
    "versionDesc": ("version", "版本"),
}
_SUBSCRIPTIONS = {
    "topic": ("topic", "主题"),
    "subString": ("subexpression", "subscriptionexpression", "订阅表达式"),
}
_QUEUES = {
    "topic": ("topic", "主题"),
    "brokerName": ("broker", "brokername"),
    "queueId": ("queue", "queueid", "qid", "队列"),
    "brokerOffset": ("brokeroffset", "代理者位点"),
    "consumerOffset": ("consumeroffset", "消费者位点"),
    "clientInfo": ("consumerclient", "clientinfo", "clientip", "消费者终端"),
}
"""The fields of the dashboard's answers, with the titles of their columns (`_title`)."""


def _by_title(titles: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {title: name for name, of_field in titles.items() for title in of_field}


_REQUIRED = {
    CLIENTS: (_by_title(_CLIENTS), {"clientId", "clientAddr"}),
    SUBSCRIPTIONS: (_by_title(_SUBSCRIPTIONS), {"topic", "subString"}),
    QUEUES: (_by_title(_QUEUES), {"brokerName", "queueId", "brokerOffset", "consumerOffset"}),
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
    """Tables of one answer: of a group's clients and their subscriptions, or of its queues.

    Attributes:
        tables: the tables; the first shows the kind of answer.
        settings: the group's settings that follow its clients.
    """

    tables: list[_Table]
    settings: dict[str, str] = field(default_factory=dict)

    def continues_with(self, table: _Table) -> bool:
        """Return whether the table belongs to the same answer: a page has one of each topic."""
        first = self.tables[0].kind
        if table.kind != QUEUES or first != QUEUES:
            return table.kind == SUBSCRIPTIONS and first == CLIENTS
        return table.topic not in {other.topic for other in self.tables}

    def as_json(self) -> str:
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
                **self.settings,
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
    answers: list[_Answer] = []
    rest: list[str] = []
    topic, table, answer = unnamed_topic, None, None
    for line in text.splitlines(keepends=True):
        cells = _cells(line)
        if line.lstrip().startswith("#"):  # what mqadmin printed
            table = answer = None
        if kind := _kind(cells):
            titles = _REQUIRED[kind][0]
            fields = [titles.get(_title(cell), "") for cell in cells]
            table = _Table(kind, fields, "\t" if "\t" in line else "|", topic)
            if answer is not None and answer.continues_with(table):
                answer.tables.append(table)
            elif kind == SUBSCRIPTIONS:
                table = None
                rest.append(line)
            else:
                answer = _Answer([table])
                answers.append(answer)
        elif len(cells) > 1 and _title(cells[0]) in ("topic", "主题"):
            topic, table = cells[1], None
        elif named := _TOPIC.match(line):
            topic, table = named[1], None
        elif answer is not None and (setting := _SETTING.match(line)):
            answer.settings[setting[1][0].lower() + setting[1][1:]] = setting[2]
        elif table is None or not table.reads(line, cells):
            rest.append(line)
    return [answer.as_json() for answer in answers if answer.tables[0].rows], "".join(rest)


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
