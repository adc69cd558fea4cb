"""Root file systems of Debian for virtual machines, as an administrator would install them.

`root` unpacks a suite with debootstrap, adds a user with sudo and a key, and packs it into an ext4 image.
The images are in var/machines, named by the checksum of their recipe; a machine writes to a copy.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import CACHE

USER = "admin"
# What hosts of a campaign have: systemd, sshd, sudo, Python, a server, the libraries of the programs.
PACKAGES = (
    "dbus",
    "e2fsprogs",
    "initramfs-tools",
    "iproute2",
    "kmod",
    "libssl3t64",
    "libstdc++6",
    "linux-image-cloud-amd64",
    "mariadb-server-core",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "sudo",
    "systemd-sysv",
    "udev",
    "zstd",
)
# eth0 leads to the control node. Without the two stamps systemd rebuilds its databases at every boot.
FILES = {
    "etc/.updated": "",
    "var/.updated": "",
    "etc/hostname": "machine\n",
    "etc/hosts": "127.0.0.1 localhost machine\n",
    "etc/fstab": "/dev/vda / ext4 defaults 0 1\nLABEL=data /var/lib/loadprint ext4 defaults,nofail 0 2\n",
    "etc/systemd/network/10-control.network": "[Match]\nName=eth0\n\n[Network]\nDHCP=ipv4\n",
    f"etc/sudoers.d/{USER}": f"{USER} ALL=(ALL) NOPASSWD: ALL\n",
}
# Timers that would wake up within a test.
MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
)


@dataclass(frozen=True)
class Root:
    """An installed system: its disk image (raw ext4), its kernel, and the keys to reach it."""

    image: Path
    kernel: Path
    initrd: Path
    key: Path
    host_key: str


def root(suite: str) -> Root:
    """Install a suite, or take the one of an earlier test.

    Raises CalledProcessError if a download or a package fails; needs root (debootstrap) and a Debian mirror.
    """
    recipe = hashlib.sha256(repr((suite, PACKAGES, sorted(FILES.items()), MASKED)).encode()).hexdigest()[:12]
    folder = CACHE / f"{suite}-{recipe}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        new = folder.with_suffix(f".{os.getpid()}")
        new.mkdir(mode=0o700)
        try:
            _install(suite, new)
            new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return Root(
        image=folder / "root.img",
        kernel=folder / "vmlinuz",
        initrd=folder / "initrd.img",
        key=folder / "key",
        host_key=(folder / "host_key.pub").read_text().strip(),
    )


def _install(suite: str, folder: Path) -> None:
    tree = folder / "tree"
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, tree],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for name, content in FILES.items():
        (tree / name).write_text(content)
    _add_user(tree, folder / "key")
    (tree / "var/lib/loadprint").mkdir()
    for unit in MASKED:
        (tree / "etc/systemd/system" / unit).symlink_to("/dev/null")
    wanted = tree / "etc/systemd/system/multi-user.target.wants/systemd-networkd.service"
    wanted.symlink_to("/usr/lib/systemd/system/systemd-networkd.service")
    for name in ("vmlinuz", "initrd.img"):
        (kernel,) = (tree / "boot").glob(f"{name}-*")
        shutil.copy(kernel, folder / name)
    shutil.copy(tree / "etc/ssh/ssh_host_ed25519_key.pub", folder / "host_key.pub")
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tree, folder / "root.img", "4G"], check=True)
    shutil.rmtree(tree)


def _add_user(tree: Path, key: Path) -> None:
    """Create `USER`, who logs in with a key."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
    subprocess.run(["chroot", tree, "useradd", "--create-home", "--shell=/bin/bash", USER], check=True)
    ssh = tree / "home" / USER / ".ssh"
    ssh.mkdir(mode=0o700)
    shutil.copy(key.with_suffix(".pub"), ssh / "authorized_keys")
    subprocess.run(["chroot", tree, "chown", "-R", f"{USER}:{USER}", f"/home/{USER}/.ssh"], check=True)
