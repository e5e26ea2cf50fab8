from django.urls import path

from example_project.reports import views

app_name = "reports"
urlpatterns = [
    path("", views.report_list, name="list"),
    path("reports/new/", views.export, name="export"),
    path("reports/<int:pk>/", views.progress, name="progress"),
    path("reports/<int:pk>/status.json", views.status, name="status"),
]
