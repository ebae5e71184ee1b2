"""The first tables: samples of devices and models, decisions, policies, runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _big(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _short(*names: str, length: int) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.String(length), nullable=False) for name in names]


def upgrade() -> None:
    """Make all tables."""
    _make_samples()
    op.create_table(
        "decisions",
        sa.Column("id", sa.Integer, primary_key=True),
        *_big("at_ms", "serial", "at_ns"),
        *_short("kind", length=16),
        *_short("reason", length=32),
        *_short("model", length=128),
        *_short("device", length=64),
        sa.Column("subject", sa.BigInteger),
        *_text("numbers"),
    )
    op.create_index("decisions_by_time", "decisions", ["at_ms"])
    op.create_table(
        "policies",
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        *_big("at_ms"),
        *_short("author", length=128),
        *_text("reason", "document", "diff"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        *_short("name", length=128),
        *_short("kind", length=16),
        *_big("started_ms"),
        sa.Column("ended_ms", sa.BigInteger),
        *_short("state", length=16),
        sa.Column("first_policy", sa.Integer, nullable=False),
        *_text("load", "hardware"),
        *_short("code_version", length=64),
        *_text("summary"),
        *_short("author", length=128),
    )


def _make_samples() -> None:
    op.create_table(
        "device_samples",
        sa.Column("device", sa.String(64), primary_key=True),
        sa.Column("at_ms", sa.BigInteger, primary_key=True, autoincrement=False),
        *_big("pool_bytes", "reserve_bytes", "resident_bytes", "lease_bytes"),
        *_big("free_bytes", "largest_hole_bytes"),
        *(
            sa.Column(name, sa.Float, nullable=False)
            for name in ("external_fragmentation", "unusable", "internal_fragmentation", "busy")
        ),
        sa.Column("running_items", sa.Integer, nullable=False),
        sa.Column("pending_loads", sa.Integer, nullable=False),
        *_big("truth_bytes"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "model_samples",
        sa.Column("model", sa.String(128), primary_key=True),
        sa.Column("at_ms", sa.BigInteger, primary_key=True, autoincrement=False),
        *_big("submitted", "completed", "failed", "refused", "expired", "cancelled"),
        *_big("items", "batches", "good", "loads", "evictions", "loaded_bytes"),
        *_big("queued_items", "residents"),
        *(
            sa.Column(name, sa.LargeBinary, nullable=False)
            for name in ("latency", "queueing", "service")
        ),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Drop all tables."""
    for table in ("runs", "policies", "decisions", "model_samples", "device_samples"):
        op.drop_table(table)
