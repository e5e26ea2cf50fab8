"""Tags of the progress box."""
