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
