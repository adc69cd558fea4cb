"""Names the commands of an experiment as the keeper does."""

from __future__ import annotations

from typing import Any

from loadprint.commands.ab import keeper


class Variants:
    """The commands of an experiment by their names in the keeper, which depend on the initial variant."""

    initial: Any
    treatment: Any

    @property
    def keeper_commands(self) -> dict[str, str]:
        """The commands as the keeper uses them: it applies a change and reverts to the initial variant."""
        names = ("apply", "revert", "verify_applied", "verify_reverted")
        return {self.keeper_name(name): getattr(self.treatment, name) for name in names}

    def keeper_name(self, name: str) -> str:
        """The keeper's name of a command of the treatment: on a treated server it reverts by `apply`."""
        return keeper.OPPOSITE[name] if self.initial == "treatment" else name
