"""Worked examples, each a program of its own."""
