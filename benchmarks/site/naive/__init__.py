"""What teams write today: a Celery task that gets, saves and retries."""
