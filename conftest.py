"""Shared test settings: reproducible property tests; programs are compiled once for all."""

import gc
import os
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("tsallax", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("tsallax")

CACHE = Path(__file__).parent / ".pytest_cache" / "compiled"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

FASTER_COMPILATION = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
"""Halves the time in which XLA compiles learners, for slightly slower code, and compiles a program
in one piece rather than in many at once. XLA ends the process at a flag that it does not know, so
that they are given only to versions known to have them."""
if version("jaxlib").startswith(("0.7.", "0.8.", "0.9.", "0.10.")):
    os.environ.setdefault("XLA_FLAGS", FASTER_COMPILATION)

OPTIMISED = ("test_simplex.py", "simplex.py")
"""Files with tests of rounding in compiled code. All others are tests of what is computed: without
XLA's optimisations they take two thirds of the time. JAX_DISABLE_MOST_OPTIMIZATIONS=0 runs all with
them. To change the setting discards what is compiled, so that few files have one of their own."""
FLAG = "JAX_DISABLE_MOST_OPTIMIZATIONS"
CHOSEN_BY_USER = FLAG in os.environ


gc.set_threshold(10_000, 20, 20)
"""Collections after ten thousand new objects: at 700, they took a fifth of the time of importing
and collecting, and 5% of two files of `deep`."""


def pytest_collection_finish() -> None:
    """What was imported and collected lasts: later collections need not visit it."""
    gc.collect()
    gc.freeze()


LEARNING = {"deep", "runs", "sweep", "suites", "cli"}
"""Folders of tests that compile learners. The first half of all tests is for the first process: the
tests of learning are in it, so that few programs are compiled in both."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of learning first, and optimised ones last.

    A process changes that setting, and loses its programs, once.
    """

    def place(item: pytest.Item) -> tuple[bool, bool]:
        folders = item.path.relative_to(item.config.rootpath).parts
        return item.path.name in OPTIMISED, LEARNING.isdisjoint(folders)

    items.sort(key=place)


@pytest.fixture(autouse=True, scope="module")
def _optimisations(request: pytest.FixtureRequest):
    disable = request.path.name not in OPTIMISED
    if CHOSEN_BY_USER or os.environ.get(FLAG, "0") == str(int(disable)):
        return
    import jax

    os.environ[FLAG] = str(int(disable))  # for processes that a test starts, too
    jax.config.update(FLAG.lower(), disable)
    jax.clear_caches()
