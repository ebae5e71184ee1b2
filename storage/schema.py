"""Schema: the tables as they are now; migrations lead here from every earlier release."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

METADATA = MetaData()

_DEVICE_BYTES = (
    "pool_bytes",
    "reserve_bytes",
    "resident_bytes",
    "lease_bytes",
    "free_bytes",
    "largest_hole_bytes",
)
_DEVICE_SHARES = ("external_fragmentation", "unusable", "internal_fragmentation", "busy")
_MODEL_COUNTS = (
    "submitted",
    "completed",
    "failed",
    "refused",
    "expired",
    "cancelled",
    "items",
    "batches",
    "good",
    "loads",
    "evictions",
    "loaded_bytes",
    "queued_items",
    "residents",
)

DEVICE_SAMPLES = Table(
    "device_samples",
    METADATA,
    Column("device", String(64), primary_key=True),
    Column("at_ms", BigInteger, primary_key=True, autoincrement=False),
    *(Column(name, BigInteger, nullable=False) for name in _DEVICE_BYTES),
    *(Column(name, Float, nullable=False) for name in _DEVICE_SHARES),
    Column("running_items", Integer, nullable=False),
    Column("pending_loads", Integer, nullable=False),
    Column("truth_bytes", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

MODEL_SAMPLES = Table(
    "model_samples",
    METADATA,
    Column("model", String(128), primary_key=True),
    Column("at_ms", BigInteger, primary_key=True, autoincrement=False),
    *(Column(name, BigInteger, nullable=False) for name in _MODEL_COUNTS),
    Column("latency", LargeBinary, nullable=False),
    Column("queueing", LargeBinary, nullable=False),
    Column("service", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("serial", BigInteger, nullable=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("reason", String(32), nullable=False),
    Column("model", String(128), nullable=False),
    Column("device", String(64), nullable=False),
    Column("subject", BigInteger),
    Column("numbers", Text, nullable=False),
    Index("decisions_by_time", "at_ms"),
)

POLICIES = Table(
    "policies",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("author", String(128), nullable=False),
    Column("reason", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("diff", Text, nullable=False),
)

RUNS = Table(
    "runs",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(128), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Column("state", String(16), nullable=False),
    Column("first_policy", Integer, nullable=False),
    Column("load", Text, nullable=False),
    Column("hardware", Text, nullable=False),
    Column("code_version", String(64), nullable=False),
    Column("summary", Text, nullable=False),
    Column("author", String(128), nullable=False),
)

KEYFRAMES = Table(
    "keyframes",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Index("keyframes_by_time", "at_ms"),
)
