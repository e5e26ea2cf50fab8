"""Celery: the tasks, the scheduler that publishes wake-ups, the sweeper inside a worker, and their wiring.

Nothing outside this package imports Celery. A message is only a hint to look at a row; see ``scheduler``.
"""
