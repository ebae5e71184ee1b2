"""What all pages share: navigation, charts, forms, and the session's state."""
