"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.signals import setting_changed
from django.db import connections
from django.utils.translation import gettext_lazy as _

from jobtrack.ports import Runtime
from jobtrack.worker import sweeper, wiring
from jobtrack_django import conf


class JobtrackConfig(AppConfig):
    name = "jobtrack_django"
    label = "jobtrack"
    verbose_name = _("External jobs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register checks, and say how a worker builds its runtime. No query is made and no table is read."""
        from jobtrack_django import checks

        checks.register_all()
        conf.follow_settings()
        setting_changed.connect(_rebuild, dispatch_uid="jobtrack.runtime")
        wiring.set_runtime_factory(_build_runtime)
        sweeper.install(_worker_options, after_round=connections.close_all)


def _build_runtime() -> Runtime:
    # HTTP and YAML are imported by those who use them.
    from jobtrack_django.runtime import build_runtime

    return build_runtime()


def _rebuild(*, setting: str, **_signal: object) -> None:
    if setting == conf.NAME:
        wiring.set_runtime_factory(_build_runtime)


def _worker_options() -> sweeper.WorkerOptions:
    settings = conf.settings()
    interval_s = settings.sweep_interval.total_seconds()
    return sweeper.WorkerOptions(queue=settings.queue, sweep=settings.sweep, interval_s=interval_s)
