"""Figure 2b: the sparse support grows with alpha and is proven."""

import pytest

from tsallax.errors import InvalidInput
from tsallax.paper.figures import figure2b


@pytest.fixture(scope="module")
def result(computed):
    return computed(figure2b.compute, alphas=(0.1, 1.0, 10.0, 100.0), grid=(7, 7, 8))


def test_supports_grow_and_are_proven(result):
    rows = result.tables[0].rows
    sparse = [row["sparse"] for row in rows]
    assert sparse == sorted(sparse)
    assert sparse[0] < 0.5 < sparse[-1]
    for row in rows:
        assert row["sparse_proven_in"] <= row["sparse"] <= row["sparse_not_proven_out"]
        assert row["sparse_not_proven_out"] - row["sparse_proven_in"] < 0.01
        assert row["soft_above_0.01"] <= row["soft_above_0.001"] <= row["soft_above_1e-06"]


def test_values_of_the_paper_are_given_for_its_own_alphas_alone(result):
    assert [float(line.paper) for line in result.comparison] == [0.24, 0.99, 0.79, 1.0]
    assert all(f"α = {a}" in line.what for line, a in zip(result.comparison, (0.1, 100) * 2))


@pytest.mark.parametrize("alphas", [(10.0, 1.0), (1.0,), ()])
def test_alphas_that_do_not_increase_are_refused(alphas):
    with pytest.raises(InvalidInput, match="alphas"):
        figure2b.compute(alphas=alphas, grid=(5, 5, 4))
