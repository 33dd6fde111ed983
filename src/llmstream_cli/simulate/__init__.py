"""A server that answers as told and fails as told, for tests of clients.

A text (`forms`) or a recording becomes a `Reply` (`replies`); faults (`faults`) make other replies of it; the
server (`server`) sends it to whoever asks.
"""
