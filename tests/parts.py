"""The parts of `./test` and `./test full`: commands, with limits of at least five times their quiet time."""

from __future__ import annotations

from typing import NamedTuple

# The warnings of another version of clippy are printed, and are no failures.
CLIPPY = "0.1.95"

PYTEST = ".venv/bin/pytest -q -c analysis/pyproject.toml"
# The tests of a file are in one process, which makes their fixtures once; an idle process takes some of them.
PARALLEL = f"{PYTEST} -n auto --dist worksteal"
SERVER = "tests/with-server"
CARGO = "cargo test --release --locked --workspace --no-fail-fast"
# Test targets that need a MySQL server are named with_server, those of the running kernel live.
RUST = f"{CARGO} --lib --bins --test '[!wl]*'"
RUST_LIVE = f"{CARGO} --test live"
RUST_SERVER = f"{SERVER} {CARGO} --test with_server"
IGNORED = "-- --ignored --test-threads=1"
C_FILES = "probes/src/bpf/* probes/tests/bpf/* collector/tests/*.c"
RUFF = "--config analysis/pyproject.toml analysis tests ansible"
MYPY = ".venv/bin/mypy --config-file analysis/pyproject.toml"
SCRIPTS = (
    "setup characterize test tests/with-server tests/server-files tests/lint-ansible tests/machines/*.sh"
    " .ci/run workloads/clients/build collector/targets/build ansible/roles/ab/files/*.sh"
)


class Step(NamedTuple):
    """A command of a part; `limit` is in seconds."""

    name: str
    limit: int
    command: str


# Nine minutes each.
HOST_FAULTS = f"{PYTEST} tests/e2e/test_host_faults.py"
KILLED = "host_that_dies or killed_playbook or second_playbook"
DISKS = "full_disk or rebooted or costs_one_run"
CLIENTS = Step("clients of Go and Java", 1800, "workloads/clients/build")

# Spark has 300 MB, for one part.
SPARK = "tests/engines/requirements.txt target/tools/spark/requirements.txt"
INSTALL_SPARK = (
    f"cmp -s {SPARK} || {{ .venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade"
    f" --no-deps --target target/tools/spark -r {SPARK.split(maxsplit=1)[0]} && cp {SPARK}; }}"
)

Parts = dict[str, list[Step]]

GATE: Parts = {
    "lint": [
        Step("rustfmt", 120, "cargo fmt --all --check"),
        Step(
            "clippy",
            2400,
            "if cargo clippy --version | grep -wF " + CLIPPY + "; then deny='-D warnings'; fi;"
            " cargo clippy --release --locked --workspace --all-targets --quiet -- ${deny-}",
        ),
        Step(
            "clang-format",
            60,
            f".venv/bin/clang-format --dry-run -Werror {C_FILES}",
        ),
        Step("ruff", 60, f".venv/bin/ruff check {RUFF}"),
        Step("ruff format", 60, f".venv/bin/ruff format --check {RUFF}"),
        Step("mypy", 900, f"{MYPY} analysis/loadprint analysis/witness tests"),
        # Separate calls: Ansible finds plugins by file name, and the callback plugin has the package's.
        Step(
            "mypy of the plugins",
            300,
            f"{MYPY} ansible/{{callback,filter}}_plugins ansible/roles/supervisor/files",
        ),
        Step("mypy of the strategy", 300, f"{MYPY} ansible/strategy_plugins"),
        Step("import-linter", 120, ".venv/bin/lint-imports --config analysis/pyproject.toml --no-cache"),
        Step("shellcheck", 60, f".venv/bin/shellcheck {SCRIPTS}"),
        Step("ansible-lint", 600, "tests/lint-ansible"),
    ],
    "unit": [
        Step("Rust", 2400, RUST),
        Step("analysis", 1800, f"{PARALLEL} -m 'not browser and not slow and not live' tests/analysis"),
    ],
    "server": [Step("Rust with a MySQL server", 1800, RUST_SERVER)],
    "browser": [Step("reports in Chromium", 600, f"{PYTEST} -m 'browser and not slow' tests/analysis")],
    "e2e": [
        Step("a campaign", 1200, f"{PYTEST} tests/e2e/test_characterize.py tests/e2e/test_machine.py"),
        Step("sides that alternate", 1200, f"{PYTEST} tests/e2e/test_alternate.py"),
    ],
}

FULL: Parts = {
    "rust-live": [
        Step("probes", 3000, f"{RUST_LIVE} -- --test-threads=1"),
        Step("programs", 3000, f"{RUST} {IGNORED}"),
    ],
    "slow": [Step("simulations, damage", 3000, f"{PARALLEL} -m 'slow and not browser' tests/analysis")],
    "engines": [
        Step("install Spark", 1800, INSTALL_SPARK),
        Step("engines of a fleet", 3000, f"PYTHONPATH=target/tools/spark {PYTEST} tests/engines"),
    ],
    "live": [Step("recordings", 1200, f"{PYTEST} -m live tests/analysis")],
    "server": [
        CLIENTS,
        Step("Rust with a MySQL server", 3000, f"{RUST_SERVER} {IGNORED}"),
    ],
    "clients": [
        Step("gofmt", 60, "! gofmt -l workloads/clients/go | grep ."),
        Step("go vet", 600, "go vet -C workloads/clients/go ./..."),
    ],
    "ledgers": [Step("ledgers with MariaDB", 1200, f"{PYTEST} tests/ledgers")],
    "doses": [
        Step("doses", 3000, f"{SERVER} {PYTEST} tests/doses -k 'not binary'"),
        # With a binary log, a commit waits for another thread's flush of the redo log.
        Step(
            "dose of the binary log",
            1200,
            "LOADPRINT_TEST_SERVER_OPTIONS='--log-bin --sync-binlog=0'"
            f" {SERVER} {PYTEST} tests/doses -k binary",
        ),
    ],
    "ab": [Step("A/B with a MySQL server", 3000, f"{SERVER} {PYTEST} tests/ab")],
    "browser": [Step("reports in Chromium", 1200, f"{PARALLEL} -m 'browser and slow' tests/analysis")],
    "exporter": [Step("Prometheus and its exporters", 1200, f"{PYTEST} tests/exporter")],
    "campaigns": [
        CLIENTS,
        Step("campaigns", 3600, f"{PYTEST} tests/e2e/test_campaign_kinds.py tests/e2e/test_setup.py"),
    ],
    "ceilings": [Step("ceilings", 1800, f"{PYTEST} tests/e2e/test_ceilings.py")],
    "faults": [Step("faults", 3600, f"{PYTEST} tests/e2e/test_faults.py")],
    "hosts": [
        Step(
            "hosts over SSH",
            3600,
            f"{PYTEST} tests/e2e/test_hosts.py tests/e2e/test_host_existing.py"
            " tests/e2e/test_host_refusals.py",
        )
    ],
    "host-turns": [Step("turns on two hosts", 3600, f"{PYTEST} tests/e2e/test_host_turns.py")],
    "playbooks": [Step("playbooks", 3600, f"{PYTEST} tests/e2e/test_host_playbooks.py")],
    "host-faults": [Step("faults of hosts", 3600, f"{HOST_FAULTS} -k '{KILLED}'")],
    "disk-faults": [Step("faults of disks", 3600, f"{HOST_FAULTS} -k '{DISKS}'")],
    "outages": [Step("outages", 3600, f"{HOST_FAULTS} -k 'not ({KILLED} or {DISKS})'")],
    "systems": [
        Step("systems", 3600, f"{PYTEST} tests/e2e/test_host_systems.py tests/e2e/test_qualify_groups.py")
    ],
    "versions": [
        Step("servers", 3600, f"{PYTEST} tests/e2e/test_server_tarballs.py tests/e2e/test_server_versions.py")
    ],
    "kernels": [Step("kernels", 3000, f"{PYTEST} -m 'not on_request' tests/machines/test_kernels.py")],
    "machines": [
        Step("programs for other hosts", 7200, "./setup --with-full-tools --targets"),
        Step("other architectures", 7200, f"{PYTEST} -m on_request tests/machines/test_kernels.py"),
        Step("old C libraries", 7200, f"{PYTEST} tests/machines/test_targets.py"),
    ],
}
