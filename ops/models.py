"""Models: turn what a user names - a module, a file, a folder - into models and pipelines."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from engine.errors import InputError
from engine.spec import ModelSpec, PipelineSpec

Named = TypeVar("Named", ModelSpec, PipelineSpec)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Hold the models and pipelines that a station offers; their names are unique."""

    models: tuple[ModelSpec, ...]
    pipelines: tuple[PipelineSpec, ...]

    def only(self, name: str) -> Catalog:
        """Return the part that one model or pipeline needs, so that nothing else is built.

        Raises:
            InputError: There is none of that name; lists those there are.
        """
        pipelines = tuple(spec for spec in self.pipelines if spec.name == name)
        wanted = {name}.union(*(spec.models for spec in pipelines))
        models = tuple(spec for spec in self.models if spec.name in wanted)
        if not pipelines and not models:
            known = ", ".join(self.names()) or "none"
            raise InputError(f"{name}: no such model or pipeline; there are {known}")
        return Catalog(models, pipelines)

    def names(self) -> tuple[str, ...]:
        """Return all names: pipelines first, then models."""
        pipelines = tuple(spec.name for spec in self.pipelines)
        return pipelines + tuple(spec.name for spec in self.models)


def resolve(names: Sequence[str]) -> Catalog:
    """Import what `--models` names and return all that it lists.

    Args:
        names: Each a module to import (`sample_models`), a Python file, or a
            folder with an `__init__.py`; the module has a list `MODELS`, or
            `PIPELINES`, or both.

    Raises:
        InputError: It cannot be imported, lists nothing, or two names collide.
    """
    models: list[ModelSpec] = []
    pipelines: list[PipelineSpec] = []
    for name in names:
        module = _load(name)
        own_models = _listed(module, "MODELS", kind=ModelSpec)
        own_pipelines = _listed(module, "PIPELINES", kind=PipelineSpec)
        if not own_models and not own_pipelines:
            raise InputError(f"{name}: lists no models; give it MODELS = [ModelSpec(...), ...]")
        models += own_models
        pipelines += own_pipelines
    catalog = Catalog(tuple(models), tuple(pipelines))
    _check_unique(catalog.names())
    return catalog


def _load(name: str) -> ModuleType:
    path = Path(name)
    is_path = path.suffix == ".py" or path.exists() or "/" in name
    # A package of the project lies in the checkout: there its name is also a folder's.
    is_module = name.isidentifier() and importlib.util.find_spec(name) is not None
    try:
        if is_path and not is_module:
            return _load_path(name, path)
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name.partition(".")[0] or error.name == name:
            raise InputError(
                f"{name}: no such module, file or folder; --models takes "
                "a module to import, a .py file, or a folder with an __init__.py"
            ) from error
        raise InputError(f"{name}: needs {error.name}, which is not installed") from error
    except InputError:
        raise
    except Exception as error:  # a user's module may raise anything
        raise InputError(f"{name}: {type(error).__name__}: {error}") from error


def _load_path(name: str, path: Path) -> ModuleType:
    file = path if path.suffix == ".py" else path / "__init__.py"
    if not file.is_file():
        raise InputError(f"{name}: found no {file.name} there; it lists MODELS and PIPELINES")
    folder = [str(file.parent)] if file.name == "__init__.py" else None
    title = file.parent.name if folder else file.stem
    spec = importlib.util.spec_from_file_location(
        title, file, submodule_search_locations=folder
    )
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    if title in sys.modules and getattr(sys.modules[title], "__file__", None) != str(file):
        raise InputError(f"{name}: a module named {title} is loaded already; rename the file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[title] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[title]
        raise
    return module


def _listed(module: ModuleType, attribute: str, *, kind: type[Named]) -> list[Named]:
    found = getattr(module, attribute, [])
    if not isinstance(found, Iterable):
        raise InputError(f"{module.__name__}: {attribute}: found {found!r}, wanted a list")
    listed = list(found)
    for one in listed:
        if not isinstance(one, kind):
            raise InputError(
                f"{module.__name__}: {attribute}: found {type(one).__name__}, "
                f"wanted {kind.__name__}"
            )
    return listed


def _check_unique(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{name}: two models or pipelines have that name; rename one")
        seen.add(name)
