"""What may be believed: whether sides are comparable, limited, apart, observed, disturbed, warm."""
