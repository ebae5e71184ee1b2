"""Migrations: one revision per change of the schema, run when a store is opened."""
