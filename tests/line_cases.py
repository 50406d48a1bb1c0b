"""Lines of JSON, for the readers of both carriers."""

NOT_ONE_OBJECT = [
    "no json",
    '{"cluster":"c"',
    '[{"cluster":"c"}]',
    "null",
    "5",
    '"text"',
    '{"cluster":"c"} rest',
    '{"cluster":"c"}{"cluster":"d"}',
    '{"cluster":"c"},{"cluster":"d"}',
    '{"cluster":"c"}}',
    "{'cluster':'c'}",
]
"""Lines that are unparsable."""

BAD_TYPES: list[tuple[str, object]] = [
    ("event_ms", "abc"),
    ("event_ms", 2**63),
    ("event_ms", ""),
    ("read_queue_nums", 1.5),
    ("read_queue_nums", 2**31),
    ("read_queue_nums", True),
    ("read_queue_nums", [4]),
    ("subscriptions", "T1"),
    ("subscriptions", {"a": 1}),
    ("subscriptions", ["a", None]),
    ("topic", ["a"]),
    ("topic", {"a": 1}),
]
"""Column and value of fields that do not read."""

CSV_LINES: dict[str, list[str]] = {
    'a,"b, ""c"" d",,x': ["a", 'b, "c" d', "", "x"],
    '"d"e,f': ["de", "f"],
    '"d" ,f': ["d ", "f"],
    '"d" e,f': ["d e", "f"],
    '" a" a"': [' a a"'],
    '"aa" "': ['aa "'],
    '"a,b': ["a,b"],
    '"a,b"c,d': ["a,bc", "d"],
    'x,"': ["x", ""],
    'a"b,c': ['a"b', "c"],
    '"\x00a",b': ["\x00a", "b"],
    '"\x00a"': ["\x00a"],
    "\x00a": ["\x00a"],
    ' "a"': [' "a"'],
}
"""Lines of CSV and the cells that Python's ``csv`` reads in them."""
