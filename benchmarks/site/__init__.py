"""The Django project of both contenders."""
