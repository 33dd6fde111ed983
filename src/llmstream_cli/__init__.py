"""The streaming client for LLM servers that never lies about how an answer ended."""

__version__ = "0.1.0"
