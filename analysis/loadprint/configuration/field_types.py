"""Field types of YAML files: durations, sizes, names, and mappings that reject unknown keys."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from loadprint.printable import printable

MAX_SECONDS = 1e9  # 31 years
MAX_SIZE = 1 << 60  # bytes
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def seconds(value: Any) -> float:
    """Read a duration such as `8s`, `2m` or a number of seconds. Raises ValueError with the syntax."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MAX_SECONDS:
        return float(value)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)", str(value).strip())
    if not match:
        raise ValueError(f'"{value}" is not a duration; write it as 8s, 2m or 1h')
    return float(match[1]) * _SECONDS[match[2]]


def minutes(value: float) -> str:
    """Write seconds as `seconds` reads them: 20min."""
    return f"{value / 60:g}min"


def share(value: Any) -> float:
    """Read a share from 0 to under 1, such as `5 %` or 0.05. Raises ValueError with the syntax."""
    text = str(value).strip()
    try:
        parsed = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        parsed = math.nan
    if isinstance(value, bool) or not 0 <= parsed < 1:
        raise ValueError(f'"{value}" is not a share; write it as 5% or 0.05')
    return parsed


def size(value: Any) -> int:
    """Read a size such as `256M` (powers of 1024, as in MySQL) or a number of bytes.

    Raises ValueError with the syntax.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:iB|B)?", str(value).strip(), re.IGNORECASE)
    if not match:
        raise ValueError(f'"{value}" is not a size; write it as 256M or 4G')
    return int(match[1]) * _BYTES[match[2].upper()]


Seconds = Annotated[float, BeforeValidator(seconds), Field(ge=0, le=MAX_SECONDS)]
Share = Annotated[float, BeforeValidator(share), Field(gt=0)]
Size = Annotated[int, BeforeValidator(size), Field(ge=0, le=MAX_SIZE)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=40)]
# YAML text can have line breaks and tabs
Line = Annotated[str, AfterValidator(lambda text: " ".join(printable(text).split()))]
Scalar = bool | int | float | str
Options = dict[str, Scalar]
Profile = Literal["durable", "blog", "stock"]
Generator = Literal["native", "sysbench", "hammerdb", "command"]
Threads = Annotated[int, Field(ge=1)]


class Strict(BaseModel):
    """A mapping that rejects unknown keys, NaN and infinities."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
