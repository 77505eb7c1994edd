import numpy as np

from refusals import refused
from tsallax.envs.observation_format import ObservationFormat


def test_each_kind_is_stored_in_its_own_type() -> None:
    kinds = (
        ObservationFormat.vector(3),
        ObservationFormat.integer(500),
        ObservationFormat.image(4, 6, 3),
    )
    assert [form.dtype for form in kinds] == [np.float32, np.int32, np.uint8]
    assert [form.size for form in kinds] == [3, 500, 72]
    assert [form.shape for form in kinds] == [(3,), (), (4, 6, 3)]


def test_an_unknown_kind_is_refused() -> None:
    with refused("kind"):
        ObservationFormat("text", (), 1)
