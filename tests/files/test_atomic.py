"""A file appears complete or not at all."""

from pathlib import Path

import pytest

from tsallax.files.atomic import whole


def test_a_file_is_replaced_after_success_and_left_alone_after_an_exception(tmp_path: Path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def write(text: str, error: type[BaseException] | None) -> None:
        with whole(target) as draft:
            draft.write_text(text)
            assert draft.parent == tmp_path
            assert target.read_text() == "old"
            if error is not None:
                raise error

    with pytest.raises(KeyboardInterrupt):
        write("half", KeyboardInterrupt)
    assert target.read_text() == "old"
    write("new", None)
    assert target.read_text() == "new"
    assert [*tmp_path.iterdir()] == [target]
