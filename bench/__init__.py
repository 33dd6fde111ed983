"""The benchmark; see README.md here."""
