"""The memory that is free, and what does not fit into it."""

from types import SimpleNamespace
from typing import Any

from refusals import refused
from tsallax import memory


def test_the_free_memory_is_known_and_no_more_than_the_machine_has(
    monkeypatch: Any, tmp_path: Any
) -> None:
    free = memory.available_bytes()
    assert free is not None
    assert 10**6 < free < 10**14
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    for name, text in (("max", "5000"), ("current", "3000"), ("stat", "anon 1\ninactive_file 500")):
        (tmp_path / f"memory.{name}").write_text(text)
    assert memory.available_bytes() == 2500
    (tmp_path / "memory.max").write_text("max")
    assert memory.available_bytes() > 2500  # type: ignore[operator]


def test_a_device_has_memory_of_its_own() -> None:
    about = {"bytes_limit": 10**9, "bytes_in_use": 4 * 10**8}
    gpu = SimpleNamespace(platform="gpu", memory_stats=lambda: about)
    assert memory.available_bytes(gpu) == 6 * 10**8
    memory.require_memory(5 * 10**8, "a table", "use a smaller one", gpu)
    with refused("not enough memory for a table, 0.58 GB with 0.6 GB free: use a smaller one"):
        memory.require_memory(58 * 10**7, "a table", "use a smaller one", gpu)
