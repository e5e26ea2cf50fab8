"""The provider as the site knows it: the ids of its tables."""

TABLE = "acme-export"

# The same provider as it would be with less: they show what a list, an idempotency key and webhooks are good for.
LISTED, KEYED, BARE, CALLING = "acme-listed", "acme-keyed", "acme-bare", "acme-calling"
