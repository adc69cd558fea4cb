"""Parses formulas of recorded columns and computes them, of numbers or of vectors over time.

A name is TABLE.ENTITY.COLUMN or TABLE.METRIC; a counter is its increase per second, and all values are in
base units (s, B, 1). `a | b` is b where a was not recorded. A figure is over the readings in the measure
phase: `mean(a)`, `max(a)`, `min(a)`, or a quantile of a histogram, `p99(a)`; over time it is a itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

QUANTILES = frozenset({"p50", "p90", "p99", "p999"})
FIGURES = QUANTILES | {"mean", "max", "min"}
LONGEST, MOST = 4000, 300  # characters of a formula, operations with those of the names in it
SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "−",
    ast.Mult: "×",
    ast.Div: "/",
    ast.BitOr: "|",
}
STRENGTH = {"|": 0, "+": 1, "−": 1, "×": 2, "/": 2}
PLAIN = re.compile(r"[A-Za-z_*{][\w*{}]*")


@dataclass(frozen=True)
class Constant:
    """A constant."""

    value: float


@dataclass(frozen=True)
class Name:
    """What a recording has under this name."""

    name: str


@dataclass(frozen=True)
class Figure:
    """A figure over the readings of an expression."""

    word: str
    of: Node


@dataclass(frozen=True)
class Operation:
    """One of SIGNS, or `max` of two numbers."""

    sign: str
    left: Node
    right: Node


Node = Constant | Name | Figure | Operation
Get = Callable[[str], Any]  # value of a name; None if it is not known


@dataclass(frozen=True)
class Formula:
    """A formula; its `names` are those that it is computed from, figures among them as they are printed."""

    tree: Node

    @staticmethod
    def parse(text: str, source: str = "", formulas: Mapping[str, Formula] | None = None) -> Formula:
        """Parse a formula; a name without a dot is a column of `source`, and `formulas` stand for others.

        A name in quotes may have any character. Raises ValueError with the part that is not a formula.
        """
        if len(text) > LONGEST:
            raise ValueError(f"`{text[:60]}…` has more than {LONGEST:,} characters")
        try:
            plain = text.strip().replace("×", "*").replace("−", "-")
            tree = _node(ast.parse(plain, mode="eval").body, source, formulas or {})
        except (SyntaxError, OverflowError, RecursionError, MemoryError):
            raise ValueError(
                f"`{text[:60]}` is not a formula (names with other signs than _ are in quotes)"
            ) from None
        if _size(tree) > MOST or not any(True for _ in _leaves(tree)):
            raise ValueError(
                f"`{text[:60]}` has {'too many operations' if _size(tree) > MOST else 'no name'}"
            )
        return Formula(tree)

    @cached_property
    def text(self) -> str:
        """The formula as it is printed."""
        return _text(self.tree)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names in the order of their first use."""
        return tuple(dict.fromkeys(_leaves(self.tree)))

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The names whose steps limit the resolution of the value: no divisors, nor what is subtracted."""
        return tuple(dict.fromkeys(_counted(self.tree)))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names outside of figures."""
        return tuple(dict.fromkeys(_leaves(self.tree, of_figures=False)))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Its figures."""
        return tuple(_figures(self.tree))

    def divisor(self, get: Get) -> str:
        """The divisor that is 0, as it is printed."""
        return next(_zero_divisors(self.tree, get), self.text)

    def of(self, entity: str) -> Formula:
        """The formula of one device: `{}` in names is replaced."""
        return Formula(_renamed(self.tree, entity))

    def per(self, other: Formula) -> Formula:
        """This formula divided by another."""
        return Formula(Operation("/", self.tree, other.tree))

    def value(self, get: Get) -> Any:
        """Compute it; `get` returns what + − × / can be applied to.

        None if a name is not known. Raises ZeroDivisionError.
        """
        return _value(self.tree, get)

    def course(self, get: Get, readings: Get) -> Any:
        """Compute it over time, from vectors of rates: figures are of one of the `readings` each."""
        with np.errstate(all="ignore"):
            return _value(self.tree, get, readings)

    def recorded(self, is_recorded: Callable[[str], bool]) -> Formula:
        """The formula without alternatives that are not in a recording, nor those after the first that is."""
        return Formula(_recorded(self.tree, is_recorded))


def _node(tree: ast.expr, source: str, formulas: Mapping[str, Formula]) -> Node:
    parsed = partial(_node, source=source, formulas=formulas)
    node: Node | None = None
    match tree:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            node = Constant(float(value))
        case ast.Constant(value=str() as name):
            node = Name(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
            node = Operation(SIGNS[type(op)], parsed(left), parsed(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            node = Operation("−", Constant(0.0), parsed(operand))
        case ast.Call(func=ast.Name(id="max"), args=[first, second], keywords=[]):
            node = Operation("max", parsed(first), parsed(second))
        case ast.Call(func=ast.Name(id=word), args=[of], keywords=[]) if word in FIGURES:
            node = _figure(word, parsed(of))
        case ast.Name() | ast.Attribute():
            name = _dotted(tree)
            if name not in formulas and "." not in name and source:
                name = f"{source}.{name}"
            node = formulas[name].tree if name in formulas else Name(name)
    if node is None:
        raise ValueError(f"`{ast.unparse(tree)}` is not allowed in a formula")
    return node


def _figure(word: str, of: Node) -> Figure:
    """A figure: of the readings of one table, or of the buckets of one histogram. Raises ValueError."""
    figure = Figure(word, of)
    names = list(_leaves(of, of_figures=False))
    if any(True for _ in _figures(of)) or len({name.partition(".")[0] for name in names}) != 1:
        raise ValueError(f"`{_text(figure)}` is not a figure over columns of one table")
    if word in QUANTILES and not (isinstance(of, Name) and of.name.endswith(".buckets")):
        raise ValueError(f"`{_text(figure)}` is not a quantile of a histogram")
    return figure


def _size(tree: Node) -> int:
    """Operations of a tree, MOST or a little more if there are more."""
    match tree:
        case Operation(_, left, right):
            size = 1 + _size(left)
            return size if size > MOST else size + _size(right)
        case Figure(_, of):
            return 1 + _size(of)
    return 0


def _dotted(tree: ast.expr) -> str:
    match tree:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted(value)}.{name}"
    raise ValueError(f"`{ast.unparse(tree)}` is not a name")


def _text(tree: Node, strength: int = -1) -> str:
    """The text, in parentheses where the operation around it is stronger."""
    match tree:
        case Constant(value):
            return f"{value:.15g}"
        case Name(name):
            return name if all(map(PLAIN.fullmatch, name.split("."))) else f'"{name}"'
        case Figure(word, of):
            return f"{word}({_text(of)})"
        case Operation("max", left, right):
            return f"max({_text(left)}, {_text(right)})"
        case Operation(sign, left, right):
            own = STRENGTH[sign]
            text = f"{_text(left, own)} {sign} {_text(right, own + (sign in '−/'))}"
            return f"({text})" if own < strength else text


def _leaves(tree: Node, *, of_figures: bool = True) -> Iterator[str]:
    match tree:
        case Name(name):
            yield name
        case Figure() if of_figures:
            yield _text(tree)
        case Operation(_, left, right):
            yield from _leaves(left, of_figures=of_figures)
            yield from _leaves(right, of_figures=of_figures)


def _figures(tree: Node) -> Iterator[Figure]:
    match tree:
        case Figure():
            yield tree
        case Operation(_, left, right):
            yield from _figures(left)
            yield from _figures(right)


def _renamed(tree: Node, entity: str) -> Node:
    match tree:
        case Name(name):
            return Name(name.replace("{}", entity))
        case Figure(word, of):
            return Figure(word, _renamed(of, entity))
        case Operation(sign, left, right):
            return Operation(sign, _renamed(left, entity), _renamed(right, entity))
    return tree


def _zero_divisors(tree: Node, get: Get) -> Iterator[str]:
    if isinstance(tree, Operation):
        yield from _zero_divisors(tree.left, get)
        yield from _zero_divisors(tree.right, get)
        if tree.sign == "/" and not _value(tree.right, get):
            yield _text(tree.right)


def _counted(tree: Node) -> Iterator[str]:
    match tree:
        case Operation("/" | "−", left, _) if left != Constant(0.0):
            yield from _counted(left)
        case Operation(_, left, right):
            yield from _counted(left)
            yield from _counted(right)
        case _:
            yield from _leaves(tree)


def _recorded(tree: Node, is_recorded: Callable[[str], bool]) -> Node:
    if not isinstance(tree, Operation):
        return tree
    left = _recorded(tree.left, is_recorded)
    if tree.sign == "|" and all(map(is_recorded, _leaves(left))):
        return left
    right = _recorded(tree.right, is_recorded)
    if tree.sign == "|" and all(map(is_recorded, _leaves(right))):
        return right
    return Operation(tree.sign, left, right)


def _value(tree: Node, get: Get, readings: Get | None = None) -> Any:
    match tree:
        case Constant(value):
            return np.float64(value) if readings else value
        case Name(name):
            return get(name)
        case Figure(_, of):
            return _value(of, readings) if readings else get(_text(tree))
        case Operation(sign, left, right):
            first = _value(left, get, readings)
            if sign == "|" and first is not None:
                return first
            second = _value(right, get, readings)
            if sign == "|" or first is None or second is None:
                return second if sign == "|" else None
            return APPLY[sign](first, second)


def _larger(left: Any, right: Any) -> Any:
    is_scalar = isinstance(left, float) and isinstance(right, float)
    return max(left, right) if is_scalar else np.maximum(left, right)


APPLY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "−": lambda left, right: left - right,
    "×": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "max": _larger,
}


def figure(word: str, name: str) -> str:
    """The name of a figure over the readings of a column, as formulas have it."""
    return _text(Figure(word, Name(name)))


def total(formulas: list[Formula]) -> Formula:
    """The sum of formulas."""
    return Formula(
        reduce(lambda left, right: Operation("+", left, right), (formula.tree for formula in formulas))
    )
