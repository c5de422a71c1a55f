"""Recorded requests: files of several tools read, described, stored."""
