"""Fields of a rendered text, by the literal words between them: linear in the text's length.

Log templates are literals with values between them. Looking the literals up one after the other
costs one pass over the line whatever the line holds; a regular expression with several lazy groups
can cost a power of it.
"""


def between(text: str, *marks: str) -> list[str] | None:
    """The pieces between the marks, or None if `text` does not begin with the first or lacks one.

    Each mark is looked for after the one before it. A last mark of ``""`` stands for the end of the
    text; otherwise what follows the last mark is ignored.

    >>> between("unlock mq, group=G, clientId=C@1", "unlock mq, group=", ", clientId=", "")
    ['G', 'C@1']
    """
    if not text.startswith(marks[0]):
        return None
    at = len(marks[0])
    pieces = []
    for mark in marks[1:]:
        end = text.find(mark, at) if mark else len(text)
        if end < 0:
            return None
        pieces.append(text[at:end])
        at = end + len(mark)
    return pieces
