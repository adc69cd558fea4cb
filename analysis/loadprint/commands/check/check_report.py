"""Applies the rules to the subjects, and collects findings and rules not checked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from loadprint.commands.check.check_rules import RULES, SEVERITIES, Rule
from loadprint.commands.check.subject import Subject, Unknown
from loadprint.judging.effective import MIB, mib

POOL_STEP = 128 * MIB  # innodb_buffer_pool_chunk_size: pool sizes are multiples of it


@dataclass(frozen=True)
class Finding:
    """One mistake: its rule, the evidence, why it matters, the fix, and the subjects that have it."""

    id: str
    severity: str
    evidence: str
    why: str
    fix: str
    where: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The result of a check: `unknown` contains (rule, reason), `passed` contains rules."""

    subjects: tuple[str, ...]
    findings: tuple[Finding, ...]
    unknown: tuple[tuple[str, str], ...]
    passed: tuple[str, ...]

    @property
    def ruined(self) -> bool:
        """Whether a finding ruins the results."""
        return any(finding.severity == SEVERITIES[0] for finding in self.findings)


def judge(subjects: Sequence[Subject]) -> Report:
    """Apply all rules. A rule is unknown if no subject has its facts."""
    findings: list[Finding] = []
    unknown: list[tuple[str, str]] = []
    passed: list[str] = []
    for rule in RULES:
        of_rule, reasons = _apply(rule, subjects)
        findings += of_rule
        if of_rule:
            continue
        if len(reasons) == len(subjects):
            unknown.append((rule.id, "; ".join(dict.fromkeys(reasons))))
        else:
            passed.append(rule.id)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Report(tuple(each.name for each in subjects), tuple(findings), tuple(unknown), tuple(passed))


def _apply(rule: Rule, subjects: Sequence[Subject]) -> tuple[list[Finding], list[str]]:
    """Return one finding per distinct evidence of a rule, and reasons of missing facts."""
    where: dict[tuple[str, str], list[str]] = {}
    reasons: list[str] = []
    for subject in subjects:
        try:
            evidence = rule.condition(subject)
        except Unknown as unknown:
            reasons.append(str(unknown))
            continue
        except (AttributeError, KeyError, TypeError, ValueError):
            # a fingerprint written by hand or by a later version
            reasons.append("a fact does not have the form that docs/recording-format.md specifies")
            continue
        if evidence:
            where.setdefault((evidence, _fix(rule, subject)), []).append(subject.name)
    findings = [
        Finding(rule.id, rule.severity, evidence, rule.why, fix, tuple(names))
        for (evidence, fix), names in where.items()
    ]
    return findings, reasons


def _fix(rule: Rule, subject: Subject) -> str:
    """Fill this host's names into the fix of a rule."""
    words = {"disk": "DISK", "mount": "MOUNT", "pool": "half of the memory"}
    with suppress(Unknown):
        words["disk"] = str(subject.disk()["name"])
    with suppress(Unknown):
        words["mount"] = str(subject.data().get("path"))
    with suppress(Unknown):
        half = int(subject.memory_bytes / 2) // POOL_STEP * POOL_STEP
        words["pool"] = f"{half} ({mib(half)})"
    fix = rule.fix if isinstance(rule.fix, str) else rule.fix(subject)
    for name, value in words.items():
        fix = fix.replace(f"{{{name}}}", value)
    return fix
