"""Statistics over runs, and over the seconds of one run where only these can tell."""
