"""Every rule applied to every subject: findings, what cannot be told, and what is well."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from loadprint.commands.check.check_rules import RULES, SEVERITIES, Rule
from loadprint.commands.check.subject import Subject, Unknown
from loadprint.judging.effective import MIB, mib

POOL_STEP = 128 * MIB  # innodb_buffer_pool_chunk_size, which sizes are multiples of


@dataclass(frozen=True)
class Finding:
    """One mistake: its rule, what shows it, why it matters, how to mend it, and in which subjects it is."""

    id: str
    severity: str
    evidence: str
    why: str
    mend: str
    where: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """All that a check has to say of its subjects; `unknown` holds (rule, reason), `well` names rules."""

    subjects: tuple[str, ...]
    findings: tuple[Finding, ...]
    unknown: tuple[tuple[str, str], ...]
    well: tuple[str, ...]

    @property
    def ruined(self) -> bool:
        """Whether something ruins the results."""
        return any(finding.severity == SEVERITIES[0] for finding in self.findings)


def judge(subjects: Sequence[Subject]) -> Report:
    """Apply all rules. A rule is unknown where no subject tells, and well where none has its mistake."""
    findings: list[Finding] = []
    unknown: list[tuple[str, str]] = []
    well: list[str] = []
    for rule in RULES:
        found, reasons = _apply(rule, subjects)
        findings += found
        if found:
            continue
        if len(reasons) == len(subjects):
            unknown.append((rule.id, "; ".join(dict.fromkeys(reasons))))
        else:
            well.append(rule.id)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Report(tuple(each.name for each in subjects), tuple(findings), tuple(unknown), tuple(well))


def _apply(rule: Rule, subjects: Sequence[Subject]) -> tuple[list[Finding], list[str]]:
    """Findings of one rule, one for each evidence with the subjects that show it; reasons of the others."""
    shown: dict[tuple[str, str], list[str]] = {}
    reasons: list[str] = []
    for subject in subjects:
        try:
            evidence = rule.look(subject)
        except Unknown as unknown:
            reasons.append(str(unknown))
            continue
        except (AttributeError, KeyError, TypeError, ValueError):
            # a fingerprint that somebody wrote by hand, or a later version's
            reasons.append("a fact has another form than docs/recording-format.md gives it")
            continue
        if evidence:
            shown.setdefault((evidence, _mend(rule, subject)), []).append(subject.name)
    found = [
        Finding(rule.id, rule.severity, evidence, rule.why, mend, tuple(where))
        for (evidence, mend), where in shown.items()
    ]
    return found, reasons


def _mend(rule: Rule, subject: Subject) -> str:
    """The command, with this host's names in it."""
    words = {"disk": "DISK", "mount": "MOUNT", "pool": "half of the memory"}
    with suppress(Unknown):
        words["disk"] = str(subject.disk()["name"])
    with suppress(Unknown):
        words["mount"] = str(subject.data().get("path"))
    with suppress(Unknown):
        half = int(subject.memory_bytes / 2) // POOL_STEP * POOL_STEP
        words["pool"] = f"{half} ({mib(half)})"
    mend = rule.mend
    for name, value in words.items():
        mend = mend.replace(f"{{{name}}}", value)
    return mend
