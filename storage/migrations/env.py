"""What Alembic runs: it migrates over the connection that the store hands in."""

from __future__ import annotations

from alembic import context

from storage.schema import METADATA

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
