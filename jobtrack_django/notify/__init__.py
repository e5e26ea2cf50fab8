"""Telling people of questions: planned with the question, sent by the chores (R-ESC-6)."""
