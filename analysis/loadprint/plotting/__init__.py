"""Figures for papers, as SVG or PNG files: functions that take plain values, in one style."""
