"""The dashboard: how the site stands, read in a fixed number of bounded queries (R-METRIC).

``now`` reads what is open at this moment, ``history`` the figures of the days; ``panels`` and ``charts`` show them, and
``health`` judges them for monitoring. The page is made in ``admin.dashboard``.
"""
