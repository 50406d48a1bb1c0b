"""The client library of a member, from the language and version in its heartbeats."""

JAVA, GO = "JAVA", "GO"
ALI_ONS, ALI_ONS_VERSION = "ali-ons", "3.4.9"
"""The Node.js client, and the version that it always sends along with Java as its language."""


def library_of(language: str | None, version: str | None) -> str | None:
    """Return the client library for a language and version as brokers list them; None if unknown.

    >>> library_of("JAVA", "5.3.3"), library_of("JAVA", "3.4.9"), library_of("GO", "4.5.2")
    ('JAVA', 'ali-ons', 'GO')
    """
    return ALI_ONS if (language, version) == (JAVA, ALI_ONS_VERSION) else language
