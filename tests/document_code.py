"""The code in documents: fenced blocks, and whether a program prints what its comments say."""

import re


def blocks(text: str, language: str) -> list[str]:
    """The fenced code blocks of a document in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def commands(text: str) -> list[list[str]]:
    """The arguments of the calls of tsallax in the console blocks of a document.

    >>> commands("```console\\n$ tsallax solve forest --alpha 1\\nstate 0\\n```")
    [['solve', 'forest', '--alpha', '1']]
    """
    lines = [line for block in blocks(text, "console") for line in block.splitlines()]
    return [line.split()[2:] for line in lines if line.startswith("$ tsallax ")]


def check_output(program: str, printed: list[str]) -> None:
    """Every print prints one line, and each line promised in a comment is among them.

    >>> check_output("print(1)  # 1", ["1"])
    """
    assert len(printed) == program.count("print("), f"{program.count('print(')} prints: {printed}"
    promised = re.findall(r"^print\(.*\) +# (.*)$", program, re.M)
    missing = [line for line in promised if line not in printed]
    assert not missing, f"not printed: {missing}"
