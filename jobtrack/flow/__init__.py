"""The use cases, one per file, each read from top to bottom. They perform effects and hold no rules."""
