"""Launcher: station, routes and pages behind one port; `streamlit run app.py` starts it."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator

import streamlit as st
from starlette.concurrency import run_in_threadpool

from ops import api, runtime
from ops.options import Options


@contextlib.asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Start the station with the server and close it with the server.

    It opens on a thread of its own: pages say how far it is meanwhile.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("millpond").setLevel(logging.INFO)
    runtime.start_in_background(Options.parse(sys.argv[1:], os.environ))
    try:
        yield
    finally:
        await run_in_threadpool(runtime.stop)


app = st.App("shell/main.py", lifespan=lifespan, routes=api.routes())
