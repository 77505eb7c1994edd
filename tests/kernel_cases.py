"""Cases of GPU kernels as a script: a line for each case, and the exit code."""

from collections.abc import Iterable

import jax

Verdict = tuple[bool, str]
"""Whether a case passed, and the case with its errors in words."""


def judged(name: str, errors: dict[str, float]) -> Verdict:
    """A case whose errors are relative to their tolerances: it passes if all are at most 1."""
    numbers = ", ".join(f"{key} {error:.2f}" for key, error in errors.items())
    return max(errors.values()) <= 1, f"{name}: {numbers}"


def print_verdicts(verdicts: Iterable[Verdict]) -> int:
    """Print each verdict; 1 where a case failed, or without a GPU, where none is computed."""
    print(f"jax {jax.__version__} on {jax.devices()[0].device_kind}")
    if jax.default_backend() != "gpu":
        print("no GPU: the tests run the cases interpreted, with pytest")
        return 1
    number = failed = 0
    for passed, text in verdicts:
        number += 1
        failed += not passed
        print(f"{'passed' if passed else 'FAILED'}  {text}")
    print(f"{failed} of {number} cases failed; errors of kernels are relative to their tolerances")
    return int(failed > 0)
