"""Which operator solves a problem: compiled loops on the CPU, or JAX on a device or a mesh."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.planning.accelerator.device_sweep import AXIS, SweepModel
from tsallax.planning.accelerator.functional_sweep import checked_sweep
from tsallax.planning.accelerator.jax_bellman import JaxBellman
from tsallax.planning.accelerator.stored_sweep import StoredSweep
from tsallax.planning.bellman import Bellman
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.mdp import MDP
from tsallax.planning.precision import double_precision
from tsallax.regularizer import Regularizer

GPU_TRANSITIONS = 50_000_000
"""Transitions from which a solve on a GPU, compilation and transfer included, is the quicker."""

DEVICES = ("auto", "cpu", "gpu")
PRECISIONS = ("float64", "float32")


def make_operator(
    mdp: MDP | FunctionalMDP,
    regularizer: Regularizer,
    device: str = "auto",
    precision: str = "float64",
    mesh: Mesh | None = None,
) -> Bellman | JaxBellman:
    """The operator of a problem on the device asked for."""
    checks.one_of("device", device, DEVICES)
    single = checks.one_of("precision", precision, PRECISIONS) == "float32"
    if mesh is not None:
        if not isinstance(mesh, Mesh):
            raise InvalidInput(f"mesh must be a jax.sharding.Mesh, not {type(mesh).__name__}")
        mesh = Mesh(mesh.devices.reshape(-1), (AXIS,))
    if isinstance(mdp, MDP) and mdp.discount == 1.0:
        unused = {"mesh": mesh is not None, "device": device == "gpu", "precision": single}
        for name, given in unused.items():
            if given:
                raise InvalidInput("discount 1 is solved in float64 on the CPU alone", omit=name)
        return Bellman(mdp, regularizer)
    if isinstance(mdp, MDP) and mesh is None and not _on_gpu(mdp, device, single):
        return Bellman(mdp, regularizer)
    chosen = None if mesh is not None or device == "auto" else find_device(device)
    with double_precision(not single), jax.default_device(chosen):
        dtype = jnp.float32 if single else jnp.float64
        model: SweepModel
        if isinstance(mdp, MDP):
            model = StoredSweep(mdp, dtype, mesh)
        else:
            model = checked_sweep(mdp, dtype, mesh, chosen)
    return JaxBellman(model, regularizer, mdp.discount, single, chosen)


def _on_gpu(mdp: MDP, device: str, single: bool) -> bool:
    """Whether an MDP in memory is solved in JAX; in float32 it always is."""
    if device == "auto" and not single:
        return mdp.transitions.nnz >= GPU_TRANSITIONS and jax.default_backend() == "gpu"
    return device == "gpu" or single


def find_device(kind: str) -> jax.Device:
    """The first device of a kind that JAX has here."""
    try:
        return jax.devices(kind)[0]
    except RuntimeError:
        version = ', which needs its CUDA version (pip install "jax[cuda12]")' * (kind == "gpu")
        problem = f"JAX has no {kind} here{version}"
        raise InvalidInput(problem, omit="device") from None


def all_devices() -> Mesh:
    """A mesh of all devices of all processes, for `solve(..., mesh=...)`."""
    return Mesh(np.array(jax.devices()), (AXIS,))
