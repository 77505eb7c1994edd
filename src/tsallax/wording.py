"""Words of messages: counts with their nouns, and aligned columns."""

from collections.abc import Iterable


def plural(count: int, word: str, separator: str = ",") -> str:
    """A count with its word, and a separator of thousands.

    >>> plural(1, "run"), plural(3000, "run"), plural(3000, "run", separator="")
    ('1 run', '3,000 runs', '3000 runs')
    """
    return f"{count:{separator}} {word}{'s' * (count != 1)}"


def aligned(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows of cells as text with aligned columns.

    >>> print(aligned([("agent", "DeepQ"), ("steps", "1,200")]))
    agent  DeepQ
    steps  1,200
    """
    rows = list(rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
