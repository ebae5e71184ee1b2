"""Run: opens the dashboard, after a look at what would keep it from starting."""

from __future__ import annotations

import argparse
import os
import socket
import sys

from engine.errors import InputError
from ops.machine import ROOT
from ops.models import resolve
from ops.options import DEVICES, Options, add_options
from storage import Store

ADDRESS = "127.0.0.1"
PORT = 8501


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("run", help="open the dashboard")
    add_options(parser, os.environ)
    parser.add_argument("--port", type=int, default=PORT, help="default: %(default)s")
    parser.set_defaults(act=act)


def act(chosen: argparse.Namespace) -> int:
    """Become the server of the dashboard.

    Raises:
        InputError: The port is in use, or there is no such device or module.
        StoreError: The store cannot be read, or another process owns it.
    """
    options = Options.chosen(chosen).absolute()
    check_names(options)
    check_port(chosen.port)
    Store.open(options.store).close()
    os.chdir(ROOT)  # its settings lie there
    os.execv(sys.executable, command(options, chosen.port))  # noqa: S606  our own interpreter


def command(options: Options, port: int) -> list[str]:
    """Return the command line that serves the dashboard."""
    return [
        *(sys.executable, "-m", "streamlit", "run", "app.py"),
        *("--server.port", str(port)),
        *("--", *options.arguments()),
    ]


def check_names(options: Options) -> None:
    """Make sure that models and devices are there: a server would say so only in a page.

    Raises:
        InputError: One is not.
    """
    resolve(options.models)
    if options.devices != DEVICES:
        # torch takes seconds to import, which a default needs not wait for
        from engine.devices.discover import parse_devices

        parse_devices(options.devices)


def check_port(port: int) -> None:
    """Make sure that the port can be served.

    Raises:
        InputError: It is in use, or no port at all.
    """
    if not 0 < port < 65_536:
        raise InputError(f"port: found {port}, wanted 1 to 65535")
    with socket.socket() as probe:
        # As the server will do: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            raise InputError(
                f"port {port} is in use: stop the server there, or choose another "
                f"with --port {port + 1 if port < 65_535 else PORT}"
            ) from error
