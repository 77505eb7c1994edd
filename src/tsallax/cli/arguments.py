"""Arguments of the command line: lists, KEY=VALUE pairs, and how error messages spell them."""

from collections.abc import Iterable
from typing import Any

from tsallax.errors import InvalidInput, Spelling, python_argument


def separated(option: str, text: str, kind: type = str, example: str = "") -> list[Any]:
    """The parts of an argument with commas between them.

    >>> separated("--alphas", "0.1, 1", float, "0.1,1")
    [0.1, 1.0]
    """
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{option} {text}: must be numbers, such as {example}") from None


def key_values(option: str, pairs: Iterable[str] | None) -> dict[str, Any]:
    """The arguments of a repeated option KEY=VALUE; values are YAML.

    >>> key_values("--set", ["net_arch=64,64", "double=True", "huber=None", "alpha=1:0.1:5000"])
    {'net_arch': [64, 64], 'double': True, 'huber': None, 'alpha': '1:0.1:5000'}
    """
    values: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not (equals and key.isidentifier()):
            raise InvalidInput("must have the form KEY=VALUE", source=f"{option} {pair}")
        if key in values:
            raise InvalidInput(f"{key} is given twice", source=f"{option} {pair}")
        try:
            values[key] = typed_value(text)
        except InvalidInput as error:
            raise error.of(f"{option} {pair}") from None
    return values


def typed_value(text: str) -> Any:
    """A YAML value; several with commas between them are a list, with or without brackets.

    >>> typed_value("1e-4"), typed_value("true"), typed_value("256,256"), typed_value("8x8")
    (0.0001, True, [256, 256], '8x8')
    """
    from tsallax.files import yaml_text

    bare_list = "," in text and not text.lstrip().startswith(("[", "{", "(", "'", '"'))
    return yaml_text.parse(f"[{text}]" if bare_list else text)


def spelling_of(command: Any) -> Spelling:
    """How a command spells an argument: by its own flag, or by `--set` where it has that."""
    flags = {
        parameter.name: parameter.opts[0]
        for parameter in command.params
        if parameter.opts[0].startswith("--")
    }

    def spelling(name: str, example: Any = None) -> str:
        if name in flags:
            return flags[name] if example is None else f"{flags[name]} {example}"
        argument = python_argument(name, example)
        return f"--set {argument}" if "--set" in flags.values() else argument

    return spelling
