"""Options: what a station is opened with, from the command line or the environment."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, Self

from engine.errors import InputError

STORE = "sqlite:///millpond.db"
DEVICES = "auto"
MODELS = ("sample_models",)
_SQLITE = "sqlite:///"


class OneLineParser(argparse.ArgumentParser):
    """Parse arguments; a mistake is one line on stderr and exit status 2."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where the help is."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


class _QuietParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; there are --store, --devices and --models")


@dataclass(frozen=True, slots=True)
class Options:
    """Say which store, devices and models a station opens."""

    store: str = STORE
    devices: str = DEVICES
    models: tuple[str, ...] = MODELS

    @classmethod
    def parse(cls, arguments: Sequence[str], environment: Mapping[str, str]) -> Self:
        """Read what stands after `--`; what is not given comes from MILLPOND_* variables.

        Raises:
            InputError: An argument that is not known.
        """
        parser = _QuietParser(add_help=False, allow_abbrev=False)
        add_options(parser, environment)
        return cls.chosen(parser.parse_args(list(arguments)))

    @classmethod
    def chosen(cls, found: argparse.Namespace) -> Self:
        """Return the options of a parser that `add_options` was called with."""
        return cls(store_url(found.store), found.devices, tuple(found.models.split(",")))

    def absolute(self) -> Self:
        """Return the same for another working folder."""
        store = self.store
        path = store.removeprefix(_SQLITE)
        if store.startswith(_SQLITE) and path not in ("", ":memory:"):
            store = f"{_SQLITE}{Path(path).absolute()}"
        models = tuple(str(Path(m).absolute()) if _is_path(m) else m for m in self.models)
        return replace(self, store=store, models=models)

    def arguments(self) -> list[str]:
        """Return the arguments that `parse` reads back."""
        return [
            *("--store", self.store),
            *("--devices", self.devices),
            *("--models", ",".join(self.models)),
        ]


def add_options(
    parser: argparse.ArgumentParser, environment: Mapping[str, str], *, store: str = STORE
) -> None:
    """Add --store, --devices and --models to a parser.

    Args:
        store: Default where neither argument nor variable is given.
    """
    parser.add_argument(
        "--store",
        default=environment.get("MILLPOND_STORE", store),
        metavar="URL",
        help="database of series, runs and policies, or its path (default: %(default)s)",
    )
    parser.add_argument(
        "--devices",
        default=environment.get("MILLPOND_DEVICES", DEVICES),
        help="auto, cpu:2, cpu:2x1GiB, cuda:0,1 or sim:8xV100-16G (default: %(default)s)",
    )
    parser.add_argument(
        "--models",
        default=environment.get("MILLPOND_MODELS", ",".join(MODELS)),
        help="modules, files or folders with MODELS, by comma (default: %(default)s)",
    )


def store_url(text: str) -> str:
    """Return the URL of a store that may be given as a path."""
    return text if "://" in text or not text else f"{_SQLITE}{text}"


def store_folder(url: str) -> Path | None:
    """Return the folder of a store's file; None where it has none."""
    path = url.removeprefix(_SQLITE)
    if not url.startswith(_SQLITE) or path in ("", ":memory:"):
        return None
    return Path(path).absolute().parent


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(".py")
