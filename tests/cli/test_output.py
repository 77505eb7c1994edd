"""Messages are single lines on standard error."""

import warnings

from tsallax.cli.output import print_line, warnings_as_notes


def test_messages_are_single_lines_on_standard_error(capsys):
    print_line("error", "two\n  lines")
    print_line("note", "a remark")
    assert capsys.readouterr() == ("", "tsallax: error: two lines\ntsallax: note: a remark\n")


def test_a_warning_is_printed_once_and_without_colours(capsys):
    with warnings_as_notes():
        for _ in range(2):
            warnings.warn("\x1b[33mWARN: the state is lost\x1b[0m", stacklevel=1)
        warnings.warn("not for users", DeprecationWarning, stacklevel=1)
    assert capsys.readouterr() == ("", "tsallax: note: WARN: the state is lost\n")
