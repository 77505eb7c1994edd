"""Solves over several processes: how they meet, what each of them reads, and lost processes.

Every process runs the same program. JAX's runtime connects them, by gloo on CPUs and by NCCL on
GPUs; a mesh of all devices then divides the states among them (`planning.devices.all_devices`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from os import PathLike
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tsallax.errors import InvalidInput, one_line
from tsallax.files import npz
from tsallax.planning import mdp_files
from tsallax.planning.accelerator.stored_sweep import group_states, local_parts
from tsallax.planning.forms import frozen, named
from tsallax.planning.lost_process import ProcessLost, reporting_lost_processes
from tsallax.planning.mdp import MDP
from tsallax.planning.validation import BLOCK, ULPS, row_sums

JOIN_SECONDS = 60
"""The time that a process waits at its start for the others."""
HEARTBEAT_SECONDS = 30
"""The time after which a process that does not answer is taken to be lost."""
SHUTDOWN_SECONDS = 20
"""The time that a process waits at its end for the others."""

ADDRESS, COUNT, INDEX = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"
HOW_TO_START = (
    f"set {ADDRESS}=HOST:PORT, {COUNT} and {INDEX}, or start the processes by srun or mpirun"
)

MAPPED = ("data", "indices")
"""The arrays of a file of which a process reads its own part."""


def initialize() -> None:
    """Join the other processes, which variables of the environment or the launcher name.

    Slurm, Open MPI and Kubernetes are detected by JAX. To be called once, before anything else
    uses JAX.
    """
    address = os.environ.get(ADDRESS)
    if address is not None and not address.rpartition(":")[2].isdecimal():
        raise InvalidInput(f"{ADDRESS} must have the form HOST:PORT, not {address!r}")
    count, index = _count_of(COUNT), _count_of(INDEX)
    if count is not None and index is not None and index >= count:
        raise InvalidInput(f"{INDEX} must be from 0 to {COUNT} - 1 = {count - 1}, not {index}")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    with suppress(AttributeError):  # where jax has no such option
        jax.config.update("jax_enable_preemption_service", False)  # it would catch SIGTERM
    try:
        jax.distributed.initialize(
            address,
            count,
            index,
            initialization_timeout=JOIN_SECONDS,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=SHUTDOWN_SECONDS,
        )
    except ValueError as error:
        raise InvalidInput(f"no other processes were found: {HOW_TO_START}") from error
    except jax.errors.JaxRuntimeError as error:
        reason = one_line(error)
        raise ProcessLost(f"the processes did not find each other: {reason}") from error


def shutdown() -> None:
    """Leave the other processes, when all of them have come to this point."""
    with reporting_lost_processes():
        jax.distributed.shutdown()


def _count_of(variable: str) -> int | None:
    """A variable of the environment that is a whole number."""
    text = os.environ.get(variable)
    if text is None:
        return None
    if not text.isdecimal():
        raise InvalidInput(f"{variable} must be a whole number, not {text!r}")
    return int(text)


def load_part(path: str | PathLike[str], mesh: Mesh) -> MDP:
    """Read an MDP for a solve over a mesh, checking the transitions of this process alone.

    What has one number for each state or pair is read and checked as by `MDP.load`. Transitions are
    mapped into memory, so that only what a process uses is read; the checksums of their arrays are
    therefore not compared. A file that someone has compressed is read as a whole.
    """
    arrays = npz.read(path, mdp_files.FORMAT, mapped=MAPPED)
    try:
        mdp = _with_transitions(arrays)
        for states in own_states(mdp, mesh):
            check_rows(mdp, states)
    except InvalidInput as error:
        raise error.of(path) from None
    return mdp


def own_states(mdp: MDP, mesh: Mesh) -> Iterator[NDArray[Any]]:
    """The states whose transitions are on devices of this process."""
    for group in group_states(mdp):
        listed = np.arange(mdp.n_states) if group is None else group
        for _, part in local_parts(len(listed), mesh):
            yield listed[part]


def check_rows(mdp: MDP, states: NDArray[Any]) -> None:
    """Refuse transitions of some states that lead nowhere or are not a distribution."""
    csr = mdp.transitions
    for first in range(0, len(states), BLOCK):
        pairs = _ranges(mdp.pointer, states[first : first + BLOCK])
        entries = _ranges(csr.indptr, pairs)
        successors, probabilities = csr.indices[entries], csr.data[entries]
        ends = np.concatenate([[0], np.cumsum(csr.indptr[pairs + 1] - csr.indptr[pairs])])
        sums = row_sums(probabilities, ends)
        if mdp.termination is not None:
            sums += mdp.termination[pairs]
        wrong = ~((successors >= 0) & (successors < mdp.n_states) & (probabilities >= 0))
        bad = ~(np.abs(sums - 1.0) <= ULPS)
        bad[np.searchsorted(ends, np.flatnonzero(wrong), side="right") - 1] = True
        if bad.any():
            pair = int(pairs[np.argmax(bad)])
            state = int(np.searchsorted(mdp.pointer, pair, side="right")) - 1
            place = named("state", state, mdp.state_names)
            action = named("action", int(mdp.action_of[pair]), mdp.action_names)
            raise InvalidInput(
                f"transitions of {place}, {action} are not a distribution over the states: "
                "write the file with MDP.save"
            )


def _with_transitions(arrays: dict[str, NDArray[Any]]) -> MDP:
    """An MDP with the transitions of a file as they are, and everything else checked."""
    data, indices, indptr = arrays["data"], arrays["indices"], arrays["indptr"]
    if not mdp_files.divides(indptr, len(data)):
        raise InvalidInput(f"indptr does not divide {len(data)} transitions among the pairs")
    n_pairs, n_states = len(arrays["action_of"]), len(arrays["pointer"]) - 1
    ends = arrays.get("termination")
    stand_in: dict[str, NDArray[Any]] = {
        "data": np.ones(n_pairs) if ends is None else 1.0 - ends,
        "indices": np.zeros(n_pairs, np.int32),
        "indptr": np.arange(n_pairs + 1),
    }
    mdp = MDP(**mdp_files.arguments({**arrays, **stand_in}))
    if not np.array_equal(mdp.action_of, arrays["action_of"]):
        raise InvalidInput("its pairs are not in order: write the file with MDP.save")
    transitions = csr_array((n_pairs, n_states))
    transitions.data, transitions.indices, transitions.indptr = map(frozen, (data, indices, indptr))
    object.__setattr__(mdp, "transitions", transitions)
    return mdp


def _ranges(pointer: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.int64]:
    """pointer[i], ..., pointer[i+1] - 1 for every i of some rows, one after the other."""
    start, length = pointer[rows].astype(np.int64), pointer[rows + 1] - pointer[rows]
    before = np.cumsum(length) - length
    return np.repeat(start - before, length) + np.arange(int(length.sum()))
