"""The language of a client: ``LanguageCode`` as brokers print it, and NODE, which they lack."""

from rebalance_core.model.errors import UsageError, did_you_mean

JAVA, CPP, DOTNET, PYTHON, GO, RUST = "JAVA", "CPP", "DOTNET", "PYTHON", "GO", "RUST"
NODE_JS, HTTP, OTHER_LANGUAGE = "NODE_JS", "HTTP", "OTHER"
LANGUAGE_CODES = (
    JAVA,
    CPP,
    DOTNET,
    PYTHON,
    "DELPHI",
    "ERLANG",
    "RUBY",
    OTHER_LANGUAGE,
    HTTP,
    GO,
    "PHP",
    "OMS",
    RUST,
    NODE_JS,
)
NODE = "NODE"
"""ali-ons, the remoting client for Node.js, which brokers print as JAVA, version 3.4.9."""
LANGUAGES = (*LANGUAGE_CODES, NODE)
"""The valid values of a ``language`` column in settings."""


def parse_language(text: str) -> str:
    """Return the validated language text. Raises `UsageError` for any other.

    >>> parse_language("GO")
    'GO'
    """
    if text not in LANGUAGES:
        valid, upper = ", ".join(LANGUAGES), text.upper()
        begun = max(
            (language for language in LANGUAGES if upper.startswith(language)), key=len, default=""
        )
        near = f"; did you mean {begun}?" if begun else did_you_mean(upper, LANGUAGES)
        raise UsageError(f"{text!r} is not a language; valid: {valid}{near}")
    return text
