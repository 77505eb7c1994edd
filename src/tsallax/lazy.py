"""Do without a large library until it is needed."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from threading import local
from types import ModuleType


def import_after(name: str, then: str) -> None:
    """Import the module `then` once `name` is imported: now if it has been, or as soon as it is."""
    if sys.modules.get(name) is not None:
        import_module(then)
    else:
        sys.meta_path.insert(0, _Watch(name, then))


class _Watch(MetaPathFinder):
    """Finds no module itself, but makes the import of one import another."""

    def __init__(self, name: str, then: str) -> None:
        self._name, self._then = name, then
        self._asking = local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that others find for the module waited for, with the import of the other."""
        if fullname != self._name or getattr(self._asking, "others", False):
            return None
        self._asking.others = True
        try:
            spec = find_spec(fullname)
        finally:
            self._asking.others = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                import_module(self._then)
                with suppress(ValueError):
                    sys.meta_path.remove(self)

            with suppress(AttributeError):  # a loader that cannot be watched
                spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
