"""Streams of the APIs that no server could be recorded of, built by hand from what documents them.

Each module names its source and holds ``STREAMS``: situation -> bytes. ``tests/test_shape_coverage.py`` cuts
them everywhere; where the API has an official client, its test reads the same bytes.
"""
