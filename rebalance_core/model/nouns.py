"""Numbers with their nouns, for messages."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "strategy"), counted(1200, "history")
    ('1 strategy', '1,200 histories')
    """
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else many}"
