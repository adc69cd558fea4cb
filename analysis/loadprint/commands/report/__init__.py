"""`loadprint report`: a comparison, run, sweep or A/B as one HTML page.

`collect.py`, `sweep_report.py` and `ab_report.py` gather the values of `rendering/report_data.py`; `page.py`
and the templates write the page, the scripts draw the charts. `figure_files.py` writes them as figures.
"""
