"""Database: opens and migrates a store; foreign errors end here as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry, StaticPool

from engine.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations"


def store_path(url: str) -> Path | None:
    """Return the file of a store; None when it is in memory or on a server.

    Raises:
        StoreError: Not a URL.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreError(f"{url}: not a store; write it like sqlite:///millpond.db") from error
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return None
    return Path(str(parsed.database))


def connect(url: str, *, read_only: bool) -> Engine:
    """Return an engine for a store, without touching it yet."""
    path = store_path(url)
    if path is None and make_url(url).get_backend_name() == "sqlite":
        engine = create_engine(
            "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
        )
    elif path is not None and read_only:
        if not path.exists():
            raise StoreError(f"{path}: no such store; check the path")
        engine = create_engine(f"sqlite:///file:{path}?mode=ro&uri=true")
    else:
        try:
            engine = create_engine(url)
        except (ArgumentError, ImportError) as error:
            raise StoreError(
                f"{url}: cannot be opened ({error}); write it like sqlite:///millpond.db"
            ) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_read_pragmas if read_only else _set_pragmas)
    return engine


def _set_pragmas(connection: object, _record: ConnectionPoolEntry) -> None:
    """Let readers and the one writer go on beside each other."""
    cursor = connection.cursor()  # type: ignore[attr-defined]  # a DBAPI connection
    for pragma in ("synchronous=NORMAL", "busy_timeout=5000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _set_read_pragmas(connection: object, _record: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()  # type: ignore[attr-defined]  # a DBAPI connection
    cursor.execute("PRAGMA busy_timeout=5000")
    cursor.close()


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn the database's errors into one line that says what failed."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise StoreError(f"{what}: {cause}; choose another --store or repair it") from error


def migrate(engine: Engine, name: str) -> None:
    """Bring a store to the present schema.

    Raises:
        StoreError: Not a database, not ours, written by a newer release, or not writable.
    """
    with translated(name), engine.begin() as connection:
        config = _config(connection)
        _check_version(connection, config, name=name)
        command.upgrade(config, "head")
    if (
        engine.dialect.name == "sqlite"
    ):  # only now: a database of somebody else is left as it is
        with translated(name), engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")


def check_schema(engine: Engine, name: str) -> None:
    """Refuse a store whose schema is not the present one, without changing it.

    Raises:
        StoreError: Says who can migrate it.
    """
    with translated(name), engine.connect() as connection:
        found = _version(connection)
        _check_version(connection, _config(connection), name=name)
        head = ScriptDirectory.from_config(_config(connection)).get_current_head()
        if found != head:
            raise StoreError(
                f"{name}: its schema is {found or 'empty'}, this release reads {head}; "
                "open it once for writing"
            )


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _check_version(connection: Connection, config: Config, *, name: str) -> None:
    found = _version(connection)
    if found is None:
        tables = set(inspect(connection).get_table_names())
        if tables:
            raise StoreError(f"{name}: a database of something else; choose another --store")
        return
    try:
        ScriptDirectory.from_config(config).get_revision(found)
    except CommandError as error:
        raise StoreError(
            f"{name}: written by a newer release (schema {found}); upgrade Millpond"
        ) from error
