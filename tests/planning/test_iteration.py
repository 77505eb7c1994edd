"""The loop of a solve: restarts, replacement of a method, and operators other than `Bellman`."""

from typing import ClassVar

import numpy as np
import pytest

from planning.functional_models import stock_model
from planning_problems import BY_NAME, truth
from solution_checks import METHODS, assert_enclosed
from tsallax import MDP, NotConverged, SolveInterrupted, Sparse, problems, solve
from tsallax.planning import iteration
from tsallax.planning.accelerator import device_sweep, functional_sweep
from tsallax.planning.bellman import Bellman
from tsallax.planning.methods.value_iteration import MAX_STALLS
from tsallax.planning.operator import NewtonStart, Operator
from tsallax.time_limits import DeadlineReached


class Stalling:
    """A method that makes no progress; `starts` collects the values it is given first."""

    max_stalls = 20
    starts: ClassVar[list[float]] = []

    def __init__(self, tolerance):
        pass

    def init(self):
        return True

    def step(self, operator, certificate, first):
        if first:
            self.starts.append(certificate.size)
        return certificate.iterate(np.full(operator.n_states, 7.0)), False


@pytest.mark.parametrize("guess", [None, 5.0])
def test_a_method_that_stalls_is_restarted_without_the_guess_then_replaced(monkeypatch, guess):
    """By value iteration, which contracts."""
    monkeypatch.setitem(iteration.METHODS, "auto", Stalling)
    monkeypatch.setattr(Stalling, "starts", [])
    problem = BY_NAME["garnet"]
    start = None if guess is None else np.full(problem.n_states, guess)
    solution = solve(problem.mdp(), Sparse(0.5), 1e-6, initial_value=start)
    assert_enclosed(solution, truth("garnet", "sparse"))
    assert solution.sweeps > 2 * Stalling.max_stalls
    assert Stalling.starts == ([0.0] if guess is None else [guess, 0.0])


class Rising(Stalling):
    """A method whose error does not fall for sixty steps, as that of policy iteration may."""

    max_stalls = 100

    def init(self):
        return 0

    def step(self, operator, certificate, steps):
        far = operator.shifted(certificate.updated, 0.0)
        far[0] += 1e3 if steps < 60 else 0.0
        return certificate.iterate(far), steps + 1


def test_a_method_that_may_stall_for_long_is_neither_refused_nor_replaced(monkeypatch):
    monkeypatch.setitem(iteration.METHODS, "auto", Rising)
    solution = solve(BY_NAME["garnet"].mdp(), Sparse(0.5), 1e-6)
    assert_enclosed(solution, truth("garnet", "sparse"))
    assert solution.iterations > 60 > MAX_STALLS


@pytest.fixture
def parts(monkeypatch):
    """Sweeps in twelve parts: those begun, and what the 41st of them raises."""
    monkeypatch.setattr(functional_sweep, "CPU_BLOCK", 1)
    monkeypatch.setattr(functional_sweep, "CPU_PART", 1)
    begun, raised = [], [None]

    def check():
        begun.append(True)
        if raised[0] is not None and len(begun) > 40:
            raise raised[0]

    monkeypatch.setattr(device_sweep, "check_deadline", check)
    functional_sweep.checked_sweep.cache_clear()
    yield begun, raised
    functional_sweep.checked_sweep.cache_clear()


@pytest.mark.parametrize(
    ("error", "found"),
    [(DeadlineReached(), NotConverged), (KeyboardInterrupt(), SolveInterrupted)],
)
def test_a_sweep_in_parts_ends_at_once_with_the_enclosure_of_the_last_one(parts, error, found):
    begun, raised = parts
    exact = solve(stock_model(), Sparse(0.5), 1e-9).value
    a_sweep, raised[0] = 12, error
    begun.clear()
    with pytest.raises(found) as caught:
        solve(stock_model(), Sparse(0.5), 1e-9, "value_iteration", time_limit=1e9)
    solution = caught.value.solution
    assert len(begun) == 41  # and no sweep after that
    assert solution.sweeps == (41 - a_sweep) // a_sweep  # besides the survey
    assert (solution.lower <= exact).all()
    assert (exact <= solution.upper).all()
    assert solution.policy.shape == (6, 4)


class Boxed:
    """An array that knows no arithmetic, comparison or conversion: a method must not use any."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array


class Minimal:
    """An operator that offers what the protocol asks for, with boxed arrays."""

    def __init__(self, inner):
        self.inner = inner
        for name in ("n_states", "discount", "precision", "ends", "scale", "sweep_cost"):
            setattr(self, name, getattr(inner, name))
        self.newton_cost, self.rounding = inner.newton_cost, inner.rounding

    def start(self, v):
        iterate = self.inner.start(v)
        return iterate._replace(value=Boxed(iterate.value))

    def certify(self, iterate):
        found = self.inner.certify(iterate._replace(value=iterate.value.array))
        return found._replace(updated=Boxed(found.updated))

    def compacted(self, certificate):
        return certificate

    def shifted(self, v, by):
        return Boxed(self.inner.shifted(v.array, by))

    def policy_sweeps(self, certificate, v, max_sweeps, max_span):
        found, *rest = self.inner.policy_sweeps(certificate, v.array, max_sweeps, max_span)
        return Boxed(found), *rest

    def newton_start(self, certificate):
        return NewtonStart(certificate, certificate.updated, None, 0)

    def policy_value(self, certificate, guess, tolerance, order):
        order = np.arange(self.n_states, dtype=np.uint32)
        v, residual = self.inner.policy_value(certificate, guess.array, tolerance, order)
        return Boxed(v), residual

    def improved(self, v, lower, order, thorough):
        return v, 0


@pytest.mark.parametrize("method", METHODS)
def test_methods_treat_arrays_as_opaque(method):
    problem = BY_NAME["discount-0.999"]
    operator: Operator = Minimal(Bellman(problem.mdp(), Sparse(0.5)))
    found = iteration.iterate_to(
        operator, method, iteration.Target(1e-4), operator.start(None), lambda share: None
    )
    assert found.reason == ""
    exact = truth(problem.name, "sparse")
    value = operator.shifted(found.certificate.updated, found.certificate.middle).array
    assert np.abs(value - exact.middle).max() <= 1e-4


def test_value_iteration_refuses_a_tolerance_out_of_reach_before_its_values_have_grown():
    mdp = problems.garnet(100, 4, 5).with_discount(0.9999)
    with pytest.raises(NotConverged, match="1e-09 is below what float64 can prove") as refused:
        solve(mdp, Sparse(0.1), 1e-9, "value_iteration")
    assert refused.value.solution.sweeps < 300  # 1,391 until v is near V*


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("guess", [None, 30.0])
def test_the_tolerance_that_a_refusal_names_can_be_proven(method, discount, guess):
    garnet = problems.garnet(50, 3, 3)
    mdp = MDP(garnet.transitions, 10.0 + garnet.rewards, discount)
    start = None if guess is None else np.full(50, guess)
    with pytest.raises(NotConverged, match="is about") as refused:
        solve(mdp, Sparse(0.1), 1e-17, method, initial_value=start)
    named = float(str(refused.value).split("which is about ")[1].split(":")[0])
    assert named < 1e-12 / (1.0 - discount) ** 2
    solution = solve(mdp, Sparse(0.1), named, method, initial_value=start)
    assert solution.converged


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_relative_tolerance_is_met_while_values_still_grow(sign):
    mdp = problems.garnet(50, 3, 3)
    mdp = MDP(mdp.transitions, sign * (1.0 + mdp.rewards), 0.999)
    options = {"tolerance": 0.0, "relative_tolerance": 1e-4}
    solution = solve(mdp, Sparse(0.1), method="value_iteration", **options)
    exact = solve(mdp, Sparse(0.1), 1e-7).value
    assert solution.sweeps < 100
    assert np.abs(solution.value - exact).max() <= 1e-4 * np.abs(exact).max()
