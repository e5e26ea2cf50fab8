from django.urls import path

from example_project.reports import views

app_name = "reports"
urlpatterns = [
    path("", views.report_list, name="list"),
    path("reports/new/", views.export, name="export"),
    path("reports/<int:pk>/", views.ReportProgress.as_view(), name="progress"),
    path("reports/<int:pk>/cancel/", views.cancel_export, name="cancel"),
    path("reports/<int:pk>/file/", views.file, name="file"),
    path("outcomes/<path:operation_id>/", views.ReportOutcome.as_view(see_other=False), name="outcome"),
]
