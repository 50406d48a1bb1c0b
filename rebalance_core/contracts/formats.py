"""The formats of input tables, by the suffix of their files."""

FORMATS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}


def format_of(name: str) -> str | None:
    """The format that a file's or folder's name tells, None if it tells none.

    >>> format_of("cluster_events.jsonl.gz"), format_of("cluster_events")
    ('json', None)
    """
    plain = name.rstrip("/").removesuffix(".gz")
    return next((kind for suffix, kind in FORMATS.items() if plain.endswith(suffix)), None)


def untold_format(path: str) -> str:
    """What to say of a table whose format no name tells."""
    return (
        f"the format of {path} cannot be told from its name; name the input format "
        f"(json, csv, parquet) or use a suffix: {', '.join(FORMATS)}"
    )
