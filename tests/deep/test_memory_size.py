"""Learners that do not fit into memory are refused before they are allocated."""

from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box

from refusals import refused
from small_agents import TINY, Episodic
from tsallax import DeepQ, memory
from tsallax.deep import memory_size


def test_the_size_is_that_of_the_arrays() -> None:
    agent = DeepQ("CartPole-v1", **TINY)
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(agent._learner)]
    assert memory_size.size_of(agent._learner) == sum(array.nbytes for array in arrays)


def test_a_replay_memory_that_does_not_fit_is_refused_before_it_is_allocated() -> None:
    images = Episodic(Box(0, 255, (96, 96, 3), np.uint8))
    with refused("Episodic: not enough memory for the networks and a replay of 2000000000", "GB"):
        DeepQ(images, **{**TINY, "buffer_size": 2 * 10**9})


def test_a_large_learner_causes_a_warning(monkeypatch: Any) -> None:
    monkeypatch.setattr(memory_size, "WARNING_BYTES", 1000)
    with pytest.warns(UserWarning, match=r"CartPole-v1: the networks and a replay .* take .* GB"):
        DeepQ("CartPole-v1", **TINY)


def test_an_agent_that_only_acts_needs_no_replay(tmp_path: Any, monkeypatch: Any) -> None:
    DeepQ("CartPole-v1", **TINY).save(tmp_path / "agent", replay=False)
    monkeypatch.setattr(memory, "available_bytes", lambda device: 5000)
    with refused("not enough memory for the networks and a replay of 96 transitions", "free"):
        DeepQ(gymnasium.make("CartPole-v1"), **TINY)
    assert DeepQ.load(tmp_path / "agent").predict(np.zeros(4)) in (0, 1)
