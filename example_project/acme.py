"""The provider as the site knows it: the ids of its tables."""

TABLE = "acme-export"

# The same provider as it would be with less: they show what a list and an idempotency key are good for.
LISTED, KEYED, BARE = "acme-listed", "acme-keyed", "acme-bare"
