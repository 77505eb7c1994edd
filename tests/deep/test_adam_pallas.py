"""The GPU kernel of Adam, interpreted on the CPU, agrees with the formula in double precision."""

import pytest

from adam_pallas_cases import CASES, errors


@pytest.mark.parametrize("name", CASES)
def test_rows_move_until_they_are_settled(name):
    found = errors(name, interpret=True)
    assert max(found.values()) <= 1, found
