"""`load_agent` reads agents of every kind, and files of earlier versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from small_agents import point_mass
from tsallax import DeepQ, load_agent
from tsallax.deep import checkpoint
from tsallax.errors import InvalidInput

DATA = Path(__file__).parents[1] / "data"


def test_the_kind_in_the_file_decides(tmp_path):
    point_mass().save(tmp_path / "agent")
    assert type(load_agent(tmp_path / "agent")) is DeepQ
    about, arrays = checkpoint.read(tmp_path / "agent")
    checkpoint.write(tmp_path / "other", {**about, "kind": "sarsa"}, arrays)
    with pytest.raises(InvalidInput, match="holds a sarsa agent") as refusal:
        load_agent(tmp_path / "other")
    assert refusal.value.source == str(tmp_path / "other")
