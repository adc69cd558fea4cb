"""Reports in Chromium."""
