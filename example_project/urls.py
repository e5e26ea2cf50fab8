"""Addresses of the example site."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

urlpatterns = [
    path("login/", auth.LoginView.as_view(template_name="reports/login.html"), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("jobtrack/", include("jobtrack_django.urls")),  # webhooks, and the outcome for those who may see everything
    path("", include("example_project.reports.urls")),
]
