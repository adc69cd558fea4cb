"""Checks the data directory and its disk: functions return evidence or None, or raise Unknown."""

from __future__ import annotations

from loadprint.commands.check.subject import Subject, required
from loadprint.reading.server_disks import server_disks

NOT_A_DISK = {
    kind: medium
    for medium, kinds in {
        "memory": "tmpfs ramfs",
        "a container's layers": "overlay aufs",
        "a network file system": "nfs nfs4 cifs smb3 ceph glusterfs lustre",
        "the virtual machine's host": "9p virtiofs vboxsf drvfs",
        "an encrypting layer": "ecryptfs",
    }.items()
    for kind in kinds.split()
}
COPY_ON_WRITE = ("btrfs", "zfs", "bcachefs", "f2fs", "nilfs2")
SORTING = ("bfq", "cfq", "anticipatory")


def file_system(subject: Subject) -> str | None:
    """Data that are not on a disk of this host."""
    data = subject.data()
    kind = str(data.filesystem)
    medium = NOT_A_DISK.get(kind) or ("a program" if kind.startswith("fuse") else None)
    return f"{data.path} is on {kind}, {medium}" if medium else None


def copy_on_write(subject: Subject) -> str | None:
    """A file system that never overwrites a page."""
    kind = subject.data().filesystem
    return f"the data are on {kind}" if kind in COPY_ON_WRITE else None


def loop_device(subject: Subject) -> str | None:
    """A disk that is a file."""
    disks = [disk for disk in subject.data().disks if disk.startswith("loop")]
    return f"the data are on {', '.join(disks)}" if disks else None


def os_disk(subject: Subject) -> str | None:
    """Data on the disk of the root file system."""
    data = set(subject.data().disks)
    root = set(subject.fact("root").disks)
    return f"data and / are on {', '.join(sorted(data & root))}" if data & root else None


def io_scheduler(subject: Subject) -> str | None:
    """An I/O scheduler that sorts, on a disk that does not need it."""
    disk = subject.disk()
    kind = disk.scheduler
    if kind in SORTING:
        return f"{disk.name} has {kind}"
    return f"{disk.name}, an NVMe device, has {kind}" if disk.nvme and kind == "mq-deadline" else None


def iostats(subject: Subject) -> str | None:
    """A disk without statistics."""
    disk = subject.disk()
    return f"iostats is off on {disk.name}" if disk.iostats is False else None


def write_cache(subject: Subject) -> str | None:
    """A disk that the kernel treats as one without a volatile cache."""
    disk = subject.disk()
    return f"{disk.name} is write through" if disk.write_cache == "write through" else None


def _options(subject: Subject) -> list[str]:
    options = required(subject.data().options, "mount options of the data directory were not recorded")
    return options.split(",")


def barriers(subject: Subject) -> str | None:
    """A file system that does not flush the disk's cache."""
    unsafe = [option for option in _options(subject) if option in ("nobarrier", "barrier=0")]
    return f"mounted with {unsafe[0]}" if unsafe else None


def mount_sync(subject: Subject) -> str | None:
    """A file system that waits for every write."""
    synchronous = [option for option in _options(subject) if option in ("sync", "dirsync")]
    return f"mounted with {', '.join(synchronous)}" if synchronous else None


def atime(subject: Subject) -> str | None:
    """A file system that writes the time of every read, unlike the kernel's default, relatime."""
    lazy = {"noatime", "relatime", "lazytime", "nodiratime"} & set(_options(subject))
    return None if lazy else "mounted with strict access times"


def journal(subject: Subject) -> str | None:
    """A recorder with its journal on the disk of the data."""
    subject.require_recording()
    subject.fact("storage")
    place = subject.fingerprint.place("journal")
    shared = set(place.disks if place else ()) & server_disks(subject.fingerprint).keys()
    return f"the recorder's journal is on {', '.join(sorted(shared))}" if shared else None
