"""`loadprint report`: a comparison, run, sweep or A/B as one HTML page.

`collect.py` and `sweep_and_ab.py` gather the values of `rendering/report_data.py`; `page.py` and the
templates write the page, the scripts draw the charts. `plotting/report_plot.py` draws them as figures.
"""
