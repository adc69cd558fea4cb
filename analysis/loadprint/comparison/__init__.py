"""The comparison of sides: judgements, rows and sentences put together as one table."""
