"""CLI: the `millpond` command; a user's mistake is one line on stderr and exit status 2."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence

from engine.errors import EngineError, PolicyError, StoreError
from ops.commands import doctor, load, policy, run, runs, simulate
from ops.options import OneLineParser

MISTAKE = 2
INTERRUPTED = 130
_COMMANDS = (run, load, simulate, runs, policy, doctor)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = OneLineParser(
        prog="millpond", description="One shared memory pool for many PyTorch models."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        arguments: What stands after `millpond`; None: of this process.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    chosen = parser().parse_args(arguments)
    act: Callable[[argparse.Namespace], int] = chosen.act
    try:
        return act(chosen)
    except EngineError as error:
        kind = {PolicyError: "policy: ", StoreError: "store: "}.get(type(error), "")
        text = str(error)
        prefix = "" if text.startswith(kind) else kind
        sys.stderr.write(f"millpond {chosen.command}: {prefix}{text}\n")
        return MISTAKE
    except KeyboardInterrupt:
        sys.stderr.write(f"millpond {chosen.command}: interrupted\n")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
