"""Shared test settings: reproducible property tests; programs are compiled once for all."""

import os
from pathlib import Path

from hypothesis import settings

settings.register_profile("tsallax", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("tsallax")

CACHE = Path(__file__).parent.parent / ".pytest_cache" / "compiled"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
