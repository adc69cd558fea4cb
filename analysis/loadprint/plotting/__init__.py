"""Draws figures for papers as SVG or PNG files, from plain values, in one style."""
