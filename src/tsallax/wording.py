"""Words of messages: counts with their nouns."""


def plural(count: int, word: str, separator: str = ",") -> str:
    """A count with its word, and a separator of thousands.

    >>> plural(1, "run"), plural(3000, "run"), plural(3000, "run", separator="")
    ('1 run', '3,000 runs', '3000 runs')
    """
    return f"{count:{separator}} {word}{'s' * (count != 1)}"
