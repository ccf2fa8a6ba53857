"""Stands before the real numpy on the path of test processes that are to run without it."""

raise ImportError("numpy is kept away from this test")
