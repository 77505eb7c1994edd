"""What `make dist` checks: the files in dist/, and the wheel alone on every Python that is here.

The wheel holds all files of src/tsallax and nothing else, the source distribution all files of the
repository, and the wheel that is built from it is the same. For each Python the wheel is installed
into an empty environment. There, in a folder outside of the repository, the Python of README.md
runs and prints what it says, and so do calls of the command line.

Arguments are the interpreters to use, such as `python3.12`; by default Python 3.11, 3.12 and 3.13,
as far as they are on the PATH or among the versions of pyenv.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from document_code import blocks, check_output, commands

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME = f"tsallax-{PROJECT['version']}"
WHEEL = ROOT / "dist" / f"{NAME}-py3-none-any.whl"
SDIST = ROOT / "dist" / f"{NAME}.tar.gz"
README = (ROOT / "README.md").read_text(encoding="utf-8")
VERSIONS = ("3.11", "3.12", "3.13")
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]

DIST_INFO = {
    "METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt",
    *(f"licenses/{name}" for name in PROJECT["license-files"]),
}  # fmt: skip
GENERATED = {"PKG-INFO", "setup.cfg", "src/tsallax.egg-info"}
"""What setuptools adds to a source distribution."""
LEFT_OUT = {".ci"}
"""Folders of the repository that are not part of it."""

ABOUT = """
import importlib.metadata, json, platform, tsallax
versions = {n: importlib.metadata.version(n) for n in ("tsallax", "jax", "numba", "numpy")}
print(json.dumps({"file": tsallax.__file__, "version": tsallax.__version__,
                  "python": platform.python_version(), **versions}))
"""

TRAINING = "train InvertedPendulum-v5 --actions 101 --steps 2000 --eval-every 1000 --out runs/p"
CALLS = {
    "--version": f"tsallax {PROJECT['version']}",
    "--help": "Train an agent in an environment",
    "solve forest --alpha 1 --out solution.npz": "error",
    "explore forest --out explorer.html": "explorer.html",
    "presets": "CartPole-v1",
    "config --set alpha=0.5": "alpha: 0.5",
    "train CartPole-v1 --steps 1500 --out runs/cartpole": "The run is in runs/cartpole",
    "evaluate runs/cartpole --episodes 2": "2 episodes, greedy",
    TRAINING: "The run is in runs/p",  # as in README.md, but 2,000 steps
    "train --resume --out runs/p --steps 2100": "The run is in runs/p",
    "plot runs/p --out pendulum.png": "pendulum.png",
    "reproduce figure1 --quick --out results": "index.html",
    "report results": "index.html",
}
"""Calls of the command line, and what their output must hold."""
REFUSALS = {"evaluate runs/p --episodes 1 --video p.mp4": "pip install"}
"""Calls that need an extra: one line on standard error that names it."""


class Failed(Exception):
    """What is wrong, in one line or more."""


class Python(NamedTuple):
    version: str
    path: str


def check(holds: bool, problem: str) -> None:
    if not holds:
        raise Failed(problem)


def same(found: set[str], wanted: set[str], what: str) -> None:
    """Refuse files that are missing or should not be there."""
    check(found >= wanted, f"{what} lacks {', '.join(sorted(wanted - found)[:10])}")
    check(found <= wanted, f"{what} also holds {', '.join(sorted(found - wanted)[:10])}")


def run(command: list[str], folder: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with nothing of this process's Python in its environment."""
    dropped = ("PYTHON", "VIRTUAL_ENV", "NUMBA_")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(dropped)}
    environment = {**kept, "PYTHONNOUSERSITE": "1", "MPLBACKEND": "agg"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1200
    )
    shown = " ".join(command)
    check(
        done.returncode == code,
        f"{shown}\nended with exit code {done.returncode}\n{done.stdout}{done.stderr}",
    )
    return done


def size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.2f} MB"


def repository_files() -> set[str]:
    """All tracked files, and new ones that are not ignored."""
    listed = run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], ROOT).stdout
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    return {name for name in names if name.split("/")[0] not in LEFT_OUT}


def check_sdist() -> str:
    """The source distribution has the files of the repository."""
    with tarfile.open(SDIST) as archive:
        members = [m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()]
    found = {n for n in members if not any(n == g or n.startswith(f"{g}/") for g in GENERATED)}
    if (ROOT / ".git").exists():
        same(found, repository_files(), SDIST.name)
    return f"{SDIST.name}, {size(SDIST)}, {len(found)} files"


def contents(wheel: Path) -> dict[str, int]:
    """The checksums of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


def check_wheel(folder: Path) -> str:
    """The wheel has all of src/tsallax and nothing else, and is the one of the sdist, too."""
    source = ROOT / "src"
    paths = [path for path in (source / "tsallax").rglob("*") if path.is_file()]
    wanted = {p.relative_to(source).as_posix() for p in paths if "__pycache__" not in p.parts}
    wanted |= {f"{NAME}.dist-info/{name}" for name in DIST_INFO}
    found = contents(WHEEL)
    same({*found}, wanted, WHEEL.name)
    command = [sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(SDIST)]
    run(command, folder)
    again = contents(folder / WHEEL.name)
    same({*again}, {*found}, "the wheel made from the sdist")
    differing = [name for name, checksum in found.items() if again[name] != checksum]
    check(not differing, f"the wheel made from the sdist differs in {', '.join(differing)}")
    return f"{WHEEL.name}, {size(WHEEL)}, {len(found)} files; the same from the sdist"


def pythons(names: list[str]) -> list[Python]:
    """The interpreters of these names, or of `VERSIONS`, that run."""
    if names:
        return [Python(_version(path) or sys.exit(f"{path} does not run"), path) for path in names]
    return [Python(version, path) for version in VERSIONS if (path := _find(version))]


def _find(version: str) -> str | None:
    """The path of a Python; a shim of pyenv may be on the PATH for one that does not run."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    paths = [shutil.which(name), *sorted(map(str, pyenv.glob(f"{version}.*/bin/{name}")))]
    return next((path for path in paths if path and _version(path) == version), None)


def _version(path: str) -> str | None:
    program = "import sys; print(*sys.version_info[:2], sep='.')"
    try:
        done = subprocess.run([path, "-c", program], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def check_installed(python: str, folder: Path) -> str:
    """The wheel alone in an empty environment: README.md and the command line."""
    begin = time.monotonic()
    environment, place = folder / "environment", folder / "place"
    place.mkdir()
    run([python, "-m", "venv", str(environment)], folder)
    own = str(environment / "bin" / "python")
    run([own, *PIP, "install", str(WHEEL)], folder)
    run([own, *PIP, "check"], folder)
    about = json.loads(run([own, "-c", ABOUT], place).stdout)
    check(
        Path(about["file"]).resolve().is_relative_to(environment.resolve()),
        f"tsallax is imported from {about['file']}, not from the wheel",
    )
    check(
        about["version"] == about["tsallax"] == PROJECT["version"],
        f"the version is {about['version']}, in the metadata {about['tsallax']}, "
        f"and in pyproject.toml {PROJECT['version']}",
    )
    installed = time.monotonic() - begin
    lines = check_readme(own, place)
    calls = check_command_line(str(environment / "bin" / "tsallax"), place)
    taken = time.monotonic() - begin
    versions = ", ".join(f"{name} {about[name]}" for name in ("jax", "numba", "numpy"))
    return (
        f"{about['python']} with {versions}: README.md prints {lines} lines as it says, "
        f"{calls} commands; {installed:.0f} s to install, {taken - installed:.0f} s to run"
    )


def check_readme(python: str, place: Path) -> int:
    """All Python blocks of README.md are one program; returns the number of lines it prints."""
    program = "\n".join(blocks(README, "python"))
    (place / "readme.py").write_text(program, encoding="utf-8")
    printed = run([python, "readme.py"], place).stdout.splitlines()
    try:
        check_output(program, printed)
    except AssertionError as error:
        raise Failed(f"README.md: {error}") from None
    return len(printed)


def check_command_line(tsallax: str, place: Path) -> int:
    """The calls in README.md, which shows what they print, and `CALLS`; returns their number."""
    shown = commands(README)
    for words in shown:
        printed = run([tsallax, *words], place).stdout
        labels = re.findall(r"^([a-z][a-z ]*?)  +\S", "".join(blocks(README, "console")), re.M)
        missing = [label for label in labels if f"\n{label} " not in f"\n{printed}"]
        check(not missing, f"tsallax {' '.join(words)} does not print {', '.join(missing)}")
    for call, promised in CALLS.items():
        done = run([tsallax, *call.split()], place)
        check(promised in done.stdout + done.stderr, f"tsallax {call} prints {done.stdout}")
    for call, promised in REFUSALS.items():
        done = run([tsallax, *call.split()], place, code=2)
        check(done.stderr.count("\n") == 1 and promised in done.stderr, done.stderr)
    for name in ("solution.npz", "explorer.html", "pendulum.png", "results/index.html"):
        check((place / name).stat().st_size > 500, f"{name} is empty")
    return len(shown) + len(CALLS) + len(REFUSALS)


def main(names: list[str]) -> None:
    found = pythons(names)
    absent = [version for version in VERSIONS if version not in {one.version for one in found}]
    try:
        check(bool(found), f"there is none of Python {', '.join(VERSIONS)}")
        print(f"sdist        {check_sdist()}", flush=True)
        with TemporaryDirectory() as folder:
            print(f"wheel        {check_wheel(Path(folder))}", flush=True)
        for version, path in found:
            with TemporaryDirectory() as folder:
                print(f"Python {version}  {check_installed(path, Path(folder))}", flush=True)
    except Failed as error:
        sys.exit(f"make dist: {error}")
    if absent and not names:
        print(f"not here     Python {', '.join(absent)}")


if __name__ == "__main__":
    main(sys.argv[1:])
