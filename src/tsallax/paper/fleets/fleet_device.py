"""The device that fleets are trained on, chosen and checked before any work."""

from tsallax import checks
from tsallax.errors import InvalidInput


def check_device(name: str | None) -> None:
    """Refuse a name that is no device on any machine."""
    if name is not None:
        checks.one_of("device", name, ("cpu", "gpu"))


def use_device(name: str | None) -> None:
    """Compute on the CPU or the GPU; None leaves it to JAX."""
    check_device(name)
    if name is None:
        return
    import jax

    if name == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if jax.default_backend() != name:
        hint = "install jax[cuda13] on a machine with one" if name == "gpu" else "JAX uses another"
        raise InvalidInput(f"--device {name}: JAX finds no {name.upper()} here: {hint}")


def default_device() -> str:
    """The device that JAX uses: "gpu" or "cpu"."""
    import jax

    return "gpu" if jax.default_backend() == "gpu" else "cpu"
