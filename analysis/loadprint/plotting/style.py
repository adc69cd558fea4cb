"""Sets the style of all figures and writes them: the same values give the same bytes.

Colours are those of Okabe & Ito (Color Universal Design, 2008), which are distinguishable with any colour
vision; text stays text in SVG, so that it can be searched and edited.
"""

from __future__ import annotations

import io
import logging
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadprint.errors import InputError, as_input_error
from loadprint.rendering import escape
from loadprint.safe_files import write_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis, XAxis, YAxis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#6e6e6e"
SHADE = "#f0f0f0"
WIDTH = 6.3  # inches: the text of an A4 page
DPI = 200
SUFFIXES = (".svg", ".png")
SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.0,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "figure.dpi": 100.0,
    "savefig.dpi": DPI,
    "svg.fonttype": "none",
    "svg.hashsalt": "loadprint",
    "text.parse_math": False,  # a name with two $ is a name
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
}


def styled() -> AbstractContextManager[None]:
    """A context with the style; draw and save within it."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it logs that it builds its font cache
    import matplotlib as mpl  # noqa: PLC0415  a third of a second to import

    # Not those of a matplotlibrc in the working directory, which may be another user's.
    defaults = {name: value for name, value in mpl.rcParamsDefault.items() if name != "backend"}
    context: AbstractContextManager[None] = mpl.rc_context(defaults | SETTINGS)  # type: ignore[arg-type]
    return context


def sheet(
    rows: int = 1, columns: int = 1, *, height: float = 2.9, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with rows × columns axes, `height` inches per row; axes in reading order."""
    from matplotlib.figure import Figure as New  # noqa: PLC0415  slow to import

    drawn = New(figsize=(WIDTH, height * rows), layout="constrained")
    axes = drawn.subplots(rows, columns, squeeze=False, **options)
    return drawn, [cell for row in axes for cell in row]


def colour(place: int) -> str:
    """Colour of the series at a position; they repeat after seven."""
    return COLOURS[place % len(COLOURS)]


def name_from(axes: Axes, x: float, name: str, apart: float, **options: Any) -> None:
    """Write a name at `x`, below the top of the axes, `apart` points from both."""
    axes.annotate(
        name,
        (x, 1),
        xycoords=("data", "axes fraction"),
        xytext=(apart, -apart),
        textcoords="offset points",
        va="top",
        fontsize=7,
        color=GREY,
        **options,
    )


def require_suffix(path: Path) -> None:
    """Raise InputError unless the name has a supported ending."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(path, "is neither .svg nor .png", "use one of these endings")


def save(drawn: Figure, path: Path) -> None:
    """Write a figure without date and version. Raises InputError."""
    require_suffix(path)
    suffix = path.suffix.lower()
    metadata = {"Date": None, "Creator": "loadprint"} if suffix == ".svg" else {"Software": None}
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # characters that the font lacks become boxes
        drawn.savefig(buffer, format=suffix[1:], metadata=metadata)
    content = buffer.getvalue()
    if suffix == ".svg":
        content = escape.xml(content.decode()).encode()
    with as_input_error(path, "use an existing directory"):
        write_output(path, content)


def thousands(value: float, _: object = None) -> str:
    """A tick label: 250,000 or 0.5."""
    return f"{value:,.0f}" if abs(value) >= 10 or value == round(value) else f"{value:g}"


def plain_ticks(axis: Axis, label: Callable[[float, object], str] = thousands) -> None:
    """Label the major ticks of an axis as plain numbers, and the minor ones not at all."""
    from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: PLC0415  slow to import

    axis.set_major_formatter(FuncFormatter(label))
    axis.set_minor_formatter(NullFormatter())


def log_ticks(axes: Axes, axis: XAxis | YAxis, most: int = 5) -> None:
    """Ticks as 0.1, 1, 10 instead of 10⁻¹; also 2 and 5 if the axis then has about `most`."""
    from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: PLC0415  slow to import

    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if 3 * math.log10(high / low) < most + 1 else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=most))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.minorticks_off()


def handles(names: Iterable[tuple[str, str]], **options: Any) -> list[Line2D]:
    """Entries of a legend, of (colour, name) each."""
    from matplotlib.lines import Line2D as New  # noqa: PLC0415  slow to import

    return [New([], [], color=colour, label=name, **options) for colour, name in names]


def label_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Label the rows of a plot from 0 down."""
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
