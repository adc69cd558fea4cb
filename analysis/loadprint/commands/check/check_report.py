"""Applies the rules to the subjects, and collects findings and rules not checked."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from loadprint.commands.check import rules_host, rules_server, rules_storage
from loadprint.commands.check.subject import Subject, Unknown

SEVERITIES = ("error", "warning", "info")
CONDITIONS = {**vars(rules_host), **vars(rules_storage), **vars(rules_server)}


class CheckRule(NamedTuple):
    """`condition` returns the evidence of the mistake, or None; it raises Unknown if a fact is missing."""

    id: str
    severity: str
    condition: Callable[[Subject], str | None]
    why: str
    fix: str


def _rules() -> Iterator[CheckRule]:
    rules = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
    for name, texts in rules.items():
        fix = texts.pop("fix")
        [(severity, why)] = texts.items()
        yield CheckRule(name, severity, CONDITIONS[name], why, fix)


RULES = tuple(_rules())
# word of a fix → its text on this host, and the text where a fact of it is missing
WORDS: dict[str, tuple[Callable[[Subject], str], str]] = {
    "{disk}": (lambda subject: subject.disk().name, "DISK"),
    "{mount}": (lambda subject: subject.data().path, "MOUNT"),
    "{pool}": (rules_server.half_of_memory, "half of the memory"),
    "{redo}": (rules_server.redo_fix, ""),
    "{interleave}": (rules_server.interleave_fix, ""),
}


@dataclass(frozen=True)
class CheckFinding:
    """One mistake: its rule, the evidence, why it matters, the fix, and the subjects that have it."""

    id: str
    severity: str
    evidence: str
    why: str
    fix: str
    where: tuple[str, ...]


@dataclass(frozen=True)
class CheckReport:
    """The result of a check: `unknown` contains (rule, reason), `passed` contains rules."""

    subjects: tuple[str, ...]
    findings: tuple[CheckFinding, ...]
    unknown: tuple[tuple[str, str], ...]
    passed: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether a finding is an error."""
        return any(finding.severity == SEVERITIES[0] for finding in self.findings)


def judge(subjects: Sequence[Subject]) -> CheckReport:
    """Apply all rules. A rule is unknown if no subject has its facts."""
    findings: list[CheckFinding] = []
    unknown: list[tuple[str, str]] = []
    passed: list[str] = []
    for rule in RULES:
        of_rule, reasons = _apply(rule, subjects)
        findings += of_rule
        if not of_rule and len(reasons) == len(subjects):
            unknown.append((rule.id, "; ".join(dict.fromkeys(reasons))))
        elif not of_rule:
            passed.append(rule.id)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return CheckReport(
        tuple(subject.name for subject in subjects), tuple(findings), tuple(unknown), tuple(passed)
    )


def _apply(rule: CheckRule, subjects: Sequence[Subject]) -> tuple[list[CheckFinding], list[str]]:
    """Return one finding per distinct evidence of a rule, and reasons of missing facts."""
    where: dict[tuple[str, str], list[str]] = {}
    reasons: list[str] = []
    for subject in subjects:
        try:
            evidence = rule.condition(subject)
        except Unknown as unknown:
            reasons.append(str(unknown))
            continue
        except ValueError:
            # a fingerprint written by hand or by a later version
            reasons.append("a fact does not have the form that docs/recording-format.md specifies")
            continue
        if evidence:
            where.setdefault((evidence, _fix(rule, subject)), []).append(subject.name)
    findings = [
        CheckFinding(rule.id, rule.severity, evidence, rule.why, fix, tuple(names))
        for (evidence, fix), names in where.items()
    ]
    return findings, reasons


def _fix(rule: CheckRule, subject: Subject) -> str:
    """Fill this host's names into the fix of a rule."""
    fix = rule.fix
    for word, (text, missing) in WORDS.items():
        if word in fix:
            try:
                fix = fix.replace(word, text(subject))
            except Unknown:
                fix = fix.replace(word, missing)
    return fix
