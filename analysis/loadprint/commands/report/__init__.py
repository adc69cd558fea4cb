"""The command `report`: an execution as one HTML file that people open, read and send on.

`data.py` is what a report shows, as plain values; `collect.py` and its neighbours gather them, `page.py` lays
them out, and the scripts beside it draw. Figures for papers are drawn from the same values.
"""
