from __future__ import annotations

from django.urls import path

from . import views

urlpatterns = [path("book", views.book), path("reminders/<str:campaign_id>", views.reminders)]
