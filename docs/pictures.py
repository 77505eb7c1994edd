"""The pictures of docs/choosing.md, what alpha and q do to a policy: python docs/pictures.py."""

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

from tsallax import Soft, Sparse, Tsallis, plotting

HERE = Path(__file__).parent / "images"
ANGLES = np.linspace(-np.pi, np.pi, 121)
Q = np.exp(4 * (np.cos(ANGLES - 1.2) - 1)) + 0.9 * np.exp(4 * (np.cos(ANGLES + 1.6) - 1))
"""Action values with two good directions, one a little better than the other."""
ALPHAS = np.geomspace(0.01, 10, 40)


def alphas() -> None:
    """Sparse and soft policies for several alpha, over the same action values."""
    figure, axes = plt.subplots(1, 4, figsize=(11, 2.8), sharex=True, layout="constrained")
    axes[0].plot(ANGLES, Q, color="0.3")
    axes[0].set_title("action values")
    for ax, alpha in zip(axes[1:], (0.03, 0.3, 3.0)):
        for rule, name in ((Sparse(alpha), "sparse"), (Soft(alpha), "soft")):
            p = np.asarray(rule.policy(Q))
            label = f"{name}: {np.mean(p > 0):.0%} of the actions"
            ax.fill_between(ANGLES, p, alpha=0.25, color=plotting.COLOUR[name])
            ax.plot(ANGLES, p, color=plotting.COLOUR[name], label=label)
        ax.set_title(f"alpha = {alpha:g}")
        ax.set_ylim(0, ax.get_ylim()[1] * 1.45)
        ax.legend(fontsize=7.5, frameon=False, loc="upper left")
    for ax in axes:
        ax.set_xlabel("action (direction)")
        ax.set_yticks([])
    figure.savefig(HERE / "alpha.png", dpi=150)


def indices() -> None:
    """Policies and their support for several entropic indices q at one alpha."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    shades = plt.get_cmap("viridis")(np.linspace(0.05, 0.85, 4))
    for q, shade in zip((1.0, 1.5, 2.0, 4.0), shades):
        left.plot(ANGLES, np.asarray(Tsallis(0.3, q).policy(Q)), color=shade, label=f"q = {q:g}")
        share = [np.mean(np.asarray(Tsallis(a, q).policy(Q)) > 0) for a in ALPHAS]
        right.semilogx(ALPHAS, share, color=shade, label=f"q = {q:g}")
    left.set(title="policy at alpha = 0.3", xlabel="action (direction)", yticks=[])
    right.set(title="share of actions in the support", xlabel="alpha")
    left.legend(fontsize=8, frameon=False)
    figure.savefig(HERE / "q.png", dpi=150)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    with plotting.paper_style():
        alphas()
        indices()
