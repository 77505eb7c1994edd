"""`EnvironmentWorkers`: Gymnasium environments in worker processes, with shared memory.

Every environment has a slot, an entry of the shared arrays. The owner writes an action and an order
into slots and wakes their workers; a worker carries out the orders of its slots, one after another,
and writes the outcomes into their rows. Where an episode ends, the row has its true last
observation and the first one of the next episode, which is started at once from the slot's seed.

Owner and workers wait for each other with semaphores: first by trying, for `SPIN_SECONDS` where
there are cores to spare, then blocked. Results do not depend on the number of workers; with none,
the environments are stepped in this process.
"""

import multiprocessing
import os
import pickle
import signal
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax.envs.gymnasium.adapter import GymnasiumAdapter
from tsallax.envs.gymnasium.gymnasium_make import import_gymnasium
from tsallax.errors import InvalidInput, one_line, place_in_user_code

IDLE, RESET, STEP = 0, 1, 2
"""Orders of slots."""
SPIN_SECONDS = 0.002
"""How long a process tries before it blocks: longer than the update of a fleet's agents."""
POLL_SECONDS = 0.5
"""How often a blocked process checks whether the one it waits for is alive."""
CLOSING_SECONDS = 2.0
"""How long environments may take to close."""
MIN_CORES = 4
"""The number of cores below which workers would only take them from the agents."""


Slots: TypeAlias = Sequence[int] | NDArray[np.int64]


class WorkerLost(RuntimeError):
    """A process of environments has ended, by a signal or a crash."""


class Arrays(NamedTuple):
    """What the owner and the workers share, by slot."""

    order: NDArray[np.uint8]
    action: NDArray[Any]
    seed: NDArray[np.int64]
    """The seeds of the next episodes."""
    rows: NDArray[Any]
    """The outcome, of the type `row_type`."""
    reward: NDArray[np.float64]
    """The reward in full precision."""


class Failure(NamedTuple):
    """An error of an environment: the problem in one line and the environment's slot."""

    slot: int
    problem: str


def row_type(observation: NDArray[Any], mask: NDArray[np.bool_] | None = None) -> np.dtype[Any]:
    """The type of a row, for observations and masks like these, (1, ...).

    `observation` is the current one, `next_observation` the one that the step led to: they differ
    where an episode ended. `step` is left to the owner.

    >>> row_type(np.zeros((1, 4), np.float32)).itemsize
    44
    """
    seen: Any = (observation.dtype, observation.shape[1:])
    fields: list[Any] = [("step", np.int32), ("observation", *seen), ("next_observation", *seen)]
    fields += [("reward", np.float32), ("terminated", np.bool_), ("truncated", np.bool_)]
    if mask is not None:
        fields += [(name, np.bool_, mask.shape[1:]) for name in ("mask", "next_mask")]
    return np.dtype(fields, align=True)


def default_workers(environments: int, cores: int | None = None) -> int:
    """The number of workers for n environments: equal shares, two cores left for the agents.

    >>> default_workers(16, cores=16), default_workers(16, cores=2), default_workers(1, cores=16)
    (8, 0, 0)
    """
    cores = available_cores() if cores is None else cores
    if cores < MIN_CORES or environments < 2:
        return 0
    share = -(-environments // (cores - 2))
    return -(-environments // share)


def available_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def copies(source: str | Callable[[], Any], **arguments: Any) -> Callable[[], GymnasiumAdapter]:
    """A function that makes environments of an id or a function, in this or another process.

    `arguments` are those of `GymnasiumAdapter`.

    >>> copies("CartPole-v1")().n_actions
    2
    """
    if isinstance(source, str):
        registered = import_gymnasium(source).registry.get(source.rpartition(":")[2])
        with suppress(Exception):  # of any type, from objects that cannot be pickled
            pickle.dumps(registered)
            return partial(_make_copy, source, registered, arguments)
    return partial(_make_copy, source, None, arguments)


def _make_copy(source: Any, registered: Any, arguments: dict[str, Any]) -> GymnasiumAdapter:
    if registered is not None:  # by the script of the owner, perhaps
        import_gymnasium(source).registry.setdefault(registered.id, registered)
    return GymnasiumAdapter(source, **arguments)


class EnvironmentSlots:
    """The environments of some slots, each made at its first reset."""

    def __init__(
        self, make: Callable[[], GymnasiumAdapter], numbers: Sequence[int], shared: Arrays
    ) -> None:
        self._make, self._numbers, self._shared = make, numbers, shared
        self._environments: dict[int, GymnasiumAdapter] = {}
        self._method = "make"

    def work(self) -> Failure | None:
        """Carry out the orders of the slots."""
        for slot in self._numbers:
            if self._shared.order[slot] == IDLE:
                continue
            try:
                self._carry_out(slot)
            except InvalidInput as error:
                return Failure(slot, error.problem)
            except Exception as error:  # environments raise exceptions of any type
                kind = f"{self._method} raised {type(error).__name__}"
                text = f"{kind}: {one_line(error)}".rstrip(": ")
                return Failure(slot, f"{text}{place_in_user_code(error)}")
            self._shared.order[slot] = IDLE
        return None

    def _carry_out(self, slot: int) -> None:
        shared = self._shared
        row = shared.rows[slot]
        if shared.order[slot] == RESET:
            if slot not in self._environments:
                self._method = "make"
                self._environments[slot] = self._make()
            self._restart(slot, row)
            return
        environment, self._method = self._environments[slot], "step"
        after, reward, terminated, truncated = environment.step(shared.action[slot : slot + 1])
        row["next_observation"] = row["observation"] = after[0]
        shared.reward[slot] = row["reward"] = reward[0]
        row["terminated"], row["truncated"] = terminated[0], truncated[0]
        if environment.mask is not None:
            row["next_mask"] = row["mask"] = environment.mask[0]
        if terminated[0] or truncated[0]:
            self._restart(slot, row)

    def _restart(self, slot: int, row: Any) -> None:
        environment, self._method = self._environments[slot], "reset"
        row["observation"] = environment.reset([int(self._shared.seed[slot])])[0]
        if environment.mask is not None:
            row["mask"] = environment.mask[0]

    def close(self) -> None:
        """Close the environments."""
        for environment in self._environments.values():
            environment.close()
        self._environments = {}


class Worker(NamedTuple):
    """A process and its ends of the communication."""

    process: Any
    slots: list[int]
    go: Any
    done: Any
    errors: Any


class EnvironmentWorkers:
    """Environments by slots, in worker processes or in this one.

    Args:
        name: of the environment, for errors.
        make: makes one environment; with workers it must be possible to pickle it.
        environments: the number of environments side by side.
        row: the type of a row, see `row_type`.
        action: an array like the action of one environment.
        workers: the number of processes, 0 for this one.

    There are twice as many slots as `environments`: slot i and slot i + environments, for training
    and for evaluation, belong to the same worker. An environment is made at its first `reset`.
    `rows`, `reward` and `seed` are those of `Arrays`.

    >>> make = copies("CartPole-v1")
    >>> row = row_type(np.zeros((1, 4), np.float32))
    >>> pool = EnvironmentWorkers("CartPole-v1", make, 2, row, np.int32(0), workers=0)
    >>> pool.reset([0, 1], [10, 11])
    >>> pool.send([0, 1], [0, 1])
    >>> pool.wait()
    >>> pool.rows["reward"].tolist()
    [1.0, 1.0, 0.0, 0.0]
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], GymnasiumAdapter],
        environments: int,
        row: np.dtype[Any],
        action: ArrayLike,
        workers: int,
    ) -> None:
        self.name, self.environments = name, environments
        like = np.asarray(action)
        types = (np.uint8, (like.dtype, like.shape), np.int64, row, np.float64)
        context = multiprocessing.get_context("spawn")
        sizes = [np.dtype(kind).itemsize * 2 * environments for kind in types]
        buffers = [
            context.RawArray("B", size) if workers else np.zeros(size, np.uint8) for size in sizes
        ]
        self.shared = shared = _arrays(buffers, types)
        self.rows, self.reward, self.seed = shared.rows, shared.reward, shared.seed
        self._local: EnvironmentSlots | None = None
        self._workers: list[Worker] = []
        self._sent: deque[list[Worker]] = deque()
        if not workers:
            self._local = EnvironmentSlots(make, range(2 * environments), shared)
            self._finalizer: Any = weakref.finalize(self, self._local.close)
            return
        try:
            in_script = b"__main__" in pickle.dumps(make)
        except Exception as error:  # objects raise exceptions of any type
            problem = f"cannot be passed to worker processes ({one_line(error)}): give a function"
            raise InvalidInput(
                f"{problem} defined at the top of a module, or workers=0", source=name
            ) from None
        self._spin = SPIN_SECONDS if available_cores() > workers + 1 else 0.0
        self._finalizer = weakref.finalize(self, _end, self._workers)
        with nullcontext() if in_script else _hidden_script():
            for number in range(workers):
                slots = [i for i in range(environments) if i * workers // environments == number]
                slots += [i + environments for i in slots]
                self._workers.append(_start(context, make, slots, buffers, types, self._spin))
        self._worker_of = {i: worker for worker in self._workers for i in worker.slots}

    @property
    def closed(self) -> bool:
        """Whether the environments are closed, by `close` or after an error."""
        return not self._finalizer.alive

    def reset(self, slots: Slots, seeds: Sequence[int]) -> None:
        """Start an episode in each of these slots, which gives their first `observation`."""
        self.seed[slots] = seeds
        self._order(slots, RESET)
        self.wait()

    def send(self, slots: Slots, actions: ArrayLike) -> None:
        """Begin a step in each of these slots, to be completed by `wait`."""
        self.shared.action[slots] = actions
        self._order(slots, STEP)

    def _order(self, slots: Slots, order: int) -> None:
        if self.closed:
            raise WorkerLost(f"{self.name}: these environments are closed")
        self.shared.order[slots] = order
        if self._local is not None:
            failure = self._local.work()
            if failure is not None:
                self._fail(failure)
            return
        workers = list({id(w): w for w in (self._worker_of[int(i)] for i in slots)}.values())
        for worker in workers:
            worker.go.release()
        self._sent.append(workers)

    def wait(self) -> None:
        """Wait until the oldest order that was sent is carried out."""
        if self._local is not None:
            return
        for worker in self._sent.popleft():
            if not _acquire(worker.done, self._spin, worker.process.is_alive):
                worker.process.join()
                self.close()
                raise WorkerLost(self._loss(worker))
            if worker.errors.poll():
                self._fail(Failure(*worker.errors.recv()))

    def _fail(self, failure: Failure) -> None:
        """Close everything and raise the error of an environment."""
        self.close()
        number = failure.slot % self.environments
        raise InvalidInput(f"{failure.problem} (environment {number})", source=self.name)

    def _loss(self, worker: Worker) -> str:
        """The reason for which a process has ended, as far as it is known."""
        which = f"{worker.slots[0]} to {worker.slots[len(worker.slots) // 2 - 1]}"
        code = worker.process.exitcode
        reason = f"{self.name}: the process of environments {which} ended with code {code}"
        if code == 1:
            reason += (
                '; a script with the function that makes them needs: if __name__ == "__main__":'
            )
        return reason

    def close(self) -> None:
        """Close the environments and end the workers."""
        self._finalizer()
        self._sent.clear()


def _arrays(buffers: Sequence[Any], types: Sequence[Any]) -> Arrays:
    """Arrays over buffers of bytes."""
    found = []
    for buffer, kind in zip(buffers, types, strict=True):
        base, shape = np.dtype(kind).subdtype or (np.dtype(kind), ())
        found.append(np.frombuffer(buffer, base).reshape(-1, *shape))
    return Arrays(*found)


@contextmanager
def _hidden_script() -> Iterator[None]:
    """Keep processes that are started from importing the main script, which they do not need."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _start(context: Any, make: Any, slots: Any, buffers: Any, types: Any, spin: float) -> Worker:
    go, done = context.Semaphore(0), context.Semaphore(0)
    receiver, sender = context.Pipe(duplex=False)
    arguments = make, slots, buffers, types, go, done, sender, spin
    process = context.Process(target=_run_worker, args=arguments, daemon=True)
    process.start()
    sender.close()
    return Worker(process, slots, go, done, receiver)


def _run_worker(
    make: Any, numbers: Any, buffers: Any, types: Any, go: Any, done: Any, errors: Any, spin: float
) -> None:
    """Carry out orders until the owner closes the environments or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner ends its workers, by SIGTERM
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    _use_cpu()
    slots = EnvironmentSlots(make, numbers, _arrays(buffers, types))
    parent: Any = multiprocessing.parent_process()
    try:
        while _acquire(go, spin, parent.is_alive):
            failure = slots.work()
            if failure is not None:
                errors.send(tuple(failure))
            done.release()
    finally:
        slots.close()


def _use_cpu() -> None:
    """Run environments written in JAX on the CPU: the agents use the accelerator."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_platforms", "cpu")


def _acquire(semaphore: Any, spin: float, is_alive: Callable[[], bool]) -> bool:
    """Wait for a semaphore, first by trying; False where the process that releases it has ended."""
    if semaphore.acquire(False):
        return True
    end = time.perf_counter() + spin
    while time.perf_counter() < end:
        if semaphore.acquire(False):
            return True
    while not semaphore.acquire(True, POLL_SECONDS):
        if not is_alive():
            return bool(semaphore.acquire(False))
    return True


def _end(workers: list[Worker]) -> None:
    """End worker processes, after they have closed their environments."""
    for worker in workers:
        worker.process.terminate()
    end = time.monotonic() + CLOSING_SECONDS
    for worker in workers:
        worker.process.join(max(0.0, end - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.errors.close()
