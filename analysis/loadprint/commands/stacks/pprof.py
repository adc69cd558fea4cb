"""Encodes stacks as pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto).

Written by hand, because the message needs three kinds of fields and the protobuf library 2 MB.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable

from loadprint.commands.stacks.role_stacks import RoleStacks

VARINT, BYTES = 0, 2  # wire types


class Strings:
    """The string table: each text once, the empty one first."""

    def __init__(self) -> None:
        self.places = {"": 0}

    def place(self, text: str) -> int:
        """Position of a text, which is added if it is new."""
        return self.places.setdefault(text, len(self.places))


def encoded(stacks: RoleStacks) -> bytes:
    """Gzip of a profile with samples, and their CPU time in ns or cycles; equal stacks give equal bytes."""
    tree, strings = stacks.tree, Strings()
    period = round(1e9 / tree.frequency_hz) if stacks.cycles is None else 0  # cycles have no fixed period
    # pprof takes the first mapping for the program
    modules = sorted(dict.fromkeys(frame.module for frame in tree.frames), key=_is_library)
    mappings = {module: place for place, module in enumerate(modules, start=1)}
    kind, unit = ("cpu", "nanoseconds") if stacks.cycles is None else ("cycles", "count")
    weight = _message((1, strings.place(kind)), (2, strings.place(unit)))
    fields: list[tuple[int, int | bytes]] = [
        (1, _message((1, strings.place("samples")), (2, strings.place("count")))),
        (1, weight),
    ]
    locations = [_varint(number) for number in range(1, len(tree.frames) + 1)]
    for node, count in stacks.samples.items():
        called = b"".join([locations[place] for place in reversed(tree.stack(node))])
        value = count * period if stacks.cycles is None else stacks.cycles[node]
        fields.append((2, _message((1, called), (2, _packed((count, value))))))
    for module, number in mappings.items():
        # field 7: the functions are symbolised
        fields.append((3, _message((1, number), (5, strings.place(module)), (7, 1))))
    for number, frame in enumerate(tree.frames, start=1):
        line = _message((1, number))
        fields.append((4, _message((1, number), (2, mappings[frame.module]), (4, line))))
        name = strings.place(str(frame))
        fields.append((5, _message((1, number), (2, name), (3, name), (4, strings.place(frame.module)))))
    fields += [(6, text.encode()) for text in strings.places]
    fields += [(10, round(stacks.seconds * 1e9)), (11, weight), (12, period)]
    return gzip.compress(_message(*fields), mtime=0)


def _is_library(module: str) -> bool:
    return module.startswith("[") or ".so" in module


def _message(*fields: tuple[int, int | bytes]) -> bytes:
    """Fields by number; 0 is the default and not written, except as the first string."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, bytes):
            out += _varint(number << 3 | BYTES) + _varint(len(value)) + value
        elif value:
            out += _varint(number << 3 | VARINT) + _varint(value)
    return bytes(out)


def _packed(values: Iterable[int]) -> bytes:
    return b"".join(map(_varint, values))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
