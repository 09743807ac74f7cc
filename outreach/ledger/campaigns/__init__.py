"""Campaigns, their recipients and the decision trail."""
