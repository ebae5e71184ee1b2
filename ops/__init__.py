"""The application: one public call for all that a page, a notebook or a command can do."""
