"""The command `loadprint`."""


def main() -> None:
    """Run the command."""
