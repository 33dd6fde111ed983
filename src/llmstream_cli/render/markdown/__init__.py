"""Live Markdown for a terminal: each line is printed once, and only the open block moves."""
