"""What a run did as quantities, and the rows derived from them."""
