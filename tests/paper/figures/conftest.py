"""Experiments of planning, computed as the report does."""

import pytest


@pytest.fixture(scope="session")
def computed():
    """Computes an experiment, draws it, and checks that the share of the work reported grows."""

    def compute(function, **options):
        shares = []
        result = function(shares.append, **options)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        for picture in result.pictures:
            picture.figure.draw_without_rendering()
        return result

    return compute
