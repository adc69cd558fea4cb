"""Tables that were printed in a publication: their numbers as intervals, their ratios worked out anew."""
