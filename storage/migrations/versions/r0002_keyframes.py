"""Keyframes of the memory, from which its earlier states are rebuilt."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "keyframes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )
    op.create_index("keyframes_by_time", "keyframes", ["at_ms"])
