"""What a certificate says of itself."""

import pytest

from tsallax.planning.operator import Certificate


def test_a_certificate_is_an_interval_around_the_updated_value():
    certificate = Certificate(
        updated=None, policy=None, hint="hint", pairs_used=3, n_pairs=12, change=(-1.0, 3.0),
        low=-2.0, high=5.0, rounding=0.1, size=7.0,
    )  # fmt: skip
    assert certificate.error == 3.5
    assert certificate.middle == 1.5
    assert certificate.span == 4.0
    assert certificate.support_ratio == pytest.approx(0.25)
    assert certificate.iterate("v", 2) == ("v", "hint", 2)
