"""Shared test settings: reproducible property tests without deadlines."""

from hypothesis import settings

settings.register_profile("tsallax", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("tsallax")
