"""Hosts for end-to-end tests: each has network, mount and UTS namespaces, a root directory and sshd.

The root is Debian 12 or another system, unpacked once below var/ and overlaid, so that each host has its
files for itself; /var/lib/loadprint is a directory of the machine, because servers store no data on
overlays. The control node is a network namespace with the machine's files. All are joined by a bridge, or
by a forwarder that delays and loses frames (`forwarder.py`).
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from programs import ROOT, SUCCEEDED, commanded, ended, environment, finished, playbook, started, wait_for
from programs import printed as run

from . import campaigns

HERE = Path(__file__).parent
SERVERS = ROOT / "var/servers"
PACKAGES = "openssh-server,sudo,python3,iproute2,procps,util-linux,ca-certificates"
SUBNET = "192.168.77."
NETWORKS = Path("/run/netns")
SSHD = """Port 22
HostKey /etc/ssh/host_key
PidFile none
UsePAM no
PermitRootLogin no
PasswordAuthentication no
AllowUsers admin
MaxStartups 100
Subsystem sftp internal-sftp
"""
# $1 overlay's directory, $2 real directory, $3 host name, $4 servers, $5 root directory, $6 machine of uname:
# mounts as at boot, then sshd, which ends with the test process.
BOOT = """
set -e
root=$1/root
mount -t overlay overlay -o "lowerdir=$5,upperdir=$1/upper,workdir=$1/work" "$root"
mount -t proc proc "$root/proc"
[ ! -e "$1/boot_id" ] || mount --bind "$1/boot_id" "$root/proc/sys/kernel/random/boot_id"
mount -t sysfs sysfs "$root/sys"
mount --bind /sys/fs/cgroup "$root/sys/fs/cgroup"
for place in kernel/tracing kernel/debug fs/bpf; do mount --rbind /sys/$place "$root/sys/$place" || :; done
mount --rbind /dev "$root/dev"
for place in dev/shm run tmp; do mount -t tmpfs -o mode=1777 tmpfs "$root/$place"; done
mkdir -p "$root/run/sshd" "$root/var/lib/loadprint" "$root/srv/servers"
chmod 755 "$root/run"
mount --bind "$2" "$root/var/lib/loadprint"
mount --bind -o ro "$4" "$root/srv/servers"
hostname "$3"
cd "$root"
pivot_root . mnt
umount --lazy /mnt
exec setpriv --pdeathsig KILL setarch "$6" /usr/sbin/sshd -D -e
"""


@dataclass(frozen=True)
class System:
    """A distribution: its suite, and further words of debootstrap before and after suite and directory."""

    name: str
    suite: str
    options: tuple[str, ...] = ()
    source: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        return ROOT / "var/hosts" / self.name


DEBIAN_12 = System("debian-12", "bookworm")
DEBIAN_13 = System("debian-13", "trixie")


def unpack(system: System) -> None:
    """Unpack the root directory of a system the first time, one process at a time."""
    system.root.parent.mkdir(parents=True, exist_ok=True)
    with system.root.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not system.root.exists():
            building = system.root.with_name(system.root.name + ".building")
            run("rm", "-rf", "--one-file-system", building)
            words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", *system.options]
            run(*words, system.suite, building, *system.source)
            account = ["--uid", "1000", "--create-home", "--shell", "/bin/bash", "--password", "*", "admin"]
            run("useradd", "--root", building, *account)
            (building / "etc/sudoers.d/admin").write_text("admin ALL=(ALL) NOPASSWD: ALL\n")
            (building / "etc/ssh/sshd_config").write_text(SSHD)
            building.rename(system.root)
        if not (SERVERS / "debian-unstable-mysql-server-core").exists():
            run(ROOT / "tests/with-server", "true")


@dataclass(eq=False)
class Host:
    """One host.

    `files` are the files that differ from the common root directory, `data` is its /var/lib/loadprint. With
    `ahead_s` it has another boot than this machine, and its CLOCK_MONOTONIC is ahead; that of eBPF is not.
    """

    name: str
    address: str
    place: Path
    sshd: subprocess.Popen[str] | None = None
    system: System = DEBIAN_12
    machine: str = os.uname().machine  # the architecture that it reports from its next start on
    ahead_s: int = 0

    @property
    def files(self) -> Path:
        return self.place / "upper"

    @property
    def data(self) -> Path:
        return self.place / "data"

    def processes(self) -> list[int]:
        """List the processes in its network namespace or in one that its supervisor made."""
        inode = (NETWORKS / self.name).stat().st_ino
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if network(pid) == inode]

    def shell(self, script: str) -> str:
        """Run a shell script as root inside the host, and give its output."""
        return run(*self.inside(), "sh", "-c", script)

    def inside(self) -> list[str]:
        """Give the words before a command that runs it as root inside the host."""
        assert self.sshd is not None
        return ["nsenter", "-t", str(self.sshd.pid), "-m", "-n", "-u", "-r", "-w"]

    def start(self) -> None:
        """Boot: new mounts, an SSH server with the keys that it had."""
        log = self.place / "sshd.log"
        inside = ["nsenter", f"--net={NETWORKS / self.name}", "unshare", "--mount", "--uts"]
        if self.ahead_s:
            (self.place / "boot_id").write_text(f"{uuid4()}\n")
            inside += ["--time", "--monotonic", str(self.ahead_s), "--fork"]
        places = (self.place, self.data, self.name, SERVERS, self.system.root, self.machine)
        boot = ["sh", "-c", BOOT, "sh", *map(str, places)]
        with log.open("w") as output:
            self.sshd = sshd = subprocess.Popen(
                [*inside, "--propagation", "private", *boot], stdout=output, stderr=output, text=True
            )
        wait_for("sshd", lambda: "Server listening" in log.read_text() or sshd.poll() is not None)
        assert sshd.poll() is None, log.read_text()

    def kill(self) -> None:
        """End every process at once, as a power failure does; its disk stays."""

        def ended() -> bool:
            alive = self.processes()
            for pid in alive:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self.sshd is not None:
                self.sshd.poll()
            return not alive

        wait_for("the end of all processes", ended, 30)
        if self.sshd is not None:
            self.sshd.wait()
            self.sshd = None


def network(pid: int) -> int | None:
    """Give the inode of the network namespace of a process; None for one that has ended."""
    try:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX":
            return None
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


def name_of(pid: int) -> str:
    """Name of a process; empty if it ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@dataclass
class Bench:
    """A control node, one server and load hosts, joined by a network."""

    place: Path
    hosts: list[Host]
    forwarder: Callable[[str], str] | None = None  # sends a command to it
    process: subprocess.Popen[str] | None = None  # the command that was started last

    @property
    def server(self) -> Host:
        return self.hosts[0]

    @property
    def loads(self) -> list[Host]:
        return self.hosts[1:]

    @property
    def runs(self) -> Path:
        return self.place / "runs"

    @property
    def inventory(self) -> Path:
        """Write the inventory of a campaign, as a user does."""
        return self.listed({"server": {self.server: {}}, "load": {self.loads[0]: {}}})

    def listed(self, groups: dict[str, dict[Host, dict[str, str]]]) -> Path:
        """Write an inventory of groups of hosts with further variables."""
        keys = f"-o UserKnownHostsFile={self.place}/known_hosts -o IdentitiesOnly=yes"
        common = {
            "ansible_user": "admin",
            "ansible_become": True,
            "ansible_ssh_private_key_file": str(self.place / "key"),
            "ansible_ssh_common_args": keys,
            "server_cache_dir": "/srv/servers",
        }
        children = {
            group: {
                "hosts": {
                    host.name: {"ansible_host": host.address, "server_address": host.address, **more}
                    for host, more in hosts.items()
                }
            }
            for group, hosts in groups.items()
        }
        path = self.place / "inventory.yml"
        path.write_text(json.dumps({"all": {"vars": common, "children": children}}))
        return path

    def command(self, *arguments: str | Path) -> list[str]:
        """Give the command line that runs a program on the control node."""
        return ["nsenter", f"--net={NETWORKS}/control", *map(str, arguments)]

    def campaign(self, campaign: Path, *settings: str, inventory: Path | None = None) -> list[str]:
        """Give the command line of ./characterize on these hosts."""
        hosts = inventory or self.inventory
        return self.command(*campaigns.command(campaign, self.runs, *settings, inventory=hosts))

    def playbook(self, name: str, inventory: Path, **variables: Any) -> list[str]:
        """Give the command line of a playbook on hosts of this bench."""
        return self.command(*playbook(name, "-i", inventory, **variables))

    def written(self, *, sides: tuple[str, ...] = ("near",), repeats: int = 1, **side: Any) -> Path:
        """Write the campaign `hosts` with these equal sides; `side` overrides keys of all of them."""
        [original] = campaigns.known("hosts")["sides"].values()
        changed = {"sides": dict.fromkeys(sides, original | side), "reference": sides[0], "repeats": repeats}
        return campaigns.written(self.place, "hosts", **changed)

    def left(self) -> dict[str, list[str]]:
        """List the programs that run on each host, without the SSH server."""
        names = {host.name: map(name_of, host.processes()) for host in self.hosts}
        return {
            host: [name for name in running if name.startswith(("loadprint", "mysqld"))]
            for host, running in names.items()
        }

    def has_left(self) -> bool:
        """Whether a program runs on any host, or there is a supervisor's directory."""
        alive = [host for host in self.hosts if host.sshd is not None]
        places = "ls /dev/shm; ls -d /run/loadprint 2>/dev/null || true"
        return any(self.left().values()) or any(host.shell(places) for host in alive)

    def environment(self) -> dict[str, str]:
        """Keep the files of ansible and ssh in the bench's directory; give this machine's user no sudo."""
        sudo = self.place / "bin/sudo"
        sudo.parent.mkdir(exist_ok=True)
        sudo.write_text("#!/bin/sh\necho 'no sudo on the control node' >&2\nexit 1\n")
        sudo.chmod(0o755)
        return environment() | {
            "PATH": f"{sudo.parent}:{os.environ['PATH']}",
            "ANSIBLE_BECOME_ALLOW_SAME_USER": "true",  # else root does not need it
            "ANSIBLE_HOME": str(self.place / "ansible"),
            "ANSIBLE_LOCAL_TEMP": str(self.place / "ansible/tmp"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.place / "cp"),
        }

    def start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a command in a separate session, its output in the bench's file `output`."""
        self.process = started(command, self.place / "output", env=self.environment())
        return self.process

    def run(self, command: Sequence[str], statuses: Container[int] = SUCCEEDED) -> str:
        """Run a command to its end; gives its output."""
        return ended(command, statuses, env=self.environment())

    def output(self) -> str:
        """Give the output of the command that was started last."""
        return (self.place / "output").read_text()

    def link(self, host: str, *, up: bool) -> None:
        """Connect or cut a host, or `control`, from the network."""
        run("ip", "-n", "switch", "link", "set", f"p-{host}", "up" if up else "down")

    def set(self, what: str, value: float) -> None:
        """Set `delay` (ms, each way) or `loss` (share) between the hosts."""
        assert self.forwarder is not None
        assert self.forwarder(f"{what} {value}") == "done"


def cable(name: str, address: str) -> None:
    """Make a network namespace and its cable to the switch."""
    run("ip", "netns", "add", name)
    peer = ["type", "veth", "peer", "name", "eth0", "netns", name]
    run("ip", "-n", "switch", "link", "add", f"p-{name}", *peer)
    run("ip", "-n", "switch", "link", "set", f"p-{name}", "up")
    run("ip", "-n", name, "address", "add", f"{address}/24", "dev", "eth0")
    for device in ("lo", "eth0"):
        run("ip", "-n", name, "link", "set", device, "up")
    run("ip", "-n", name, "route", "add", "default", "via", f"{SUBNET}1", "dev", "eth0")


def installed(host: Host, key: str, known: IO[str]) -> Host:
    """Make the directories of a host, its keys and its user's authorised key."""
    for folder in ("upper/etc/ssh", "upper/home/admin/.ssh", "work", "root", "data"):
        (host.place / folder).mkdir(parents=True)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", host.files / "etc/ssh/host_key")
    known.write(f"{host.address} {(host.files / 'etc/ssh/host_key.pub').read_text()}")
    (host.files / "home/admin/.ssh/authorized_keys").write_text(key)
    (host.files / "etc/hosts").write_text(f"127.0.0.1 localhost {host.name}\n")
    run("chown", "-R", "1000:1000", host.files / "home/admin")
    run("chmod", "700", host.files / "home/admin/.ssh")
    host.data.chmod(0o755)
    return host


@contextmanager
def bench(
    place: Path, *, loads: int = 1, forwarded: bool = False, systems: Sequence[System] = (), ahead_s: int = 0
) -> Iterator[Bench]:
    """Boot one server and `loads` load hosts; `forwarded`: joined by the forwarder, without delay.

    `systems` are those of the first hosts; the others have Debian 12. `ahead_s` is of the loads.
    """
    for system in (DEBIAN_12, *systems):
        unpack(system)
    names = {"control": f"{SUBNET}1", "db1": f"{SUBNET}10"}
    names |= {f"load{number}": f"{SUBNET}{19 + number}" for number in range(1, loads + 1)}
    place.chmod(0o755)
    (place / "runs").mkdir()
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / "key")
    made, stack = Bench(place, []), ExitStack()
    try:
        run("ip", "netns", "add", "switch")
        for name, address in names.items():
            cable(name, address)
        if forwarded:
            program = ["nsenter", f"--net={NETWORKS}/switch", sys.executable, HERE / "forwarder.py"]
            made.forwarder = stack.enter_context(commanded(*program, *(f"p-{name}" for name in names)))
        else:
            run("ip", "-n", "switch", "link", "add", "br0", "type", "bridge", "forward_delay", "0")
            run("ip", "-n", "switch", "link", "set", "br0", "up")
            for name in names:
                run("ip", "-n", "switch", "link", "set", f"p-{name}", "master", "br0")
        with (place / "known_hosts").open("w") as known:
            key = (place / "key.pub").read_text()
            for name in list(names)[1:]:
                system = systems[len(made.hosts)] if len(made.hosts) < len(systems) else DEBIAN_12
                ahead = ahead_s if made.hosts else 0
                host = Host(name, names[name], place / name, system=system, ahead_s=ahead)
                made.hosts.append(installed(host, key, known))
        for host in made.hosts:
            host.start()
        yield made
    finally:
        for host in made.hosts:
            host.kill()
        stack.close()
        for connection in (place / "cp").glob("*"):  # the masters of ssh's shared connections
            finished(["ssh", "-o", f"ControlPath={connection}", "-O", "exit", "any"])
        for name in ["switch", *names]:
            finished(["ip", "netns", "delete", name])
