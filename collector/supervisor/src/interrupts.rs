//! Moves the interrupts of devices to CPUs, and restores their affinities. The kernel refuses to move managed
//! interrupts, as of the queues of NVMe disks, which it distributes over all CPUs itself.

use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use loadprint_cpulist::CpuSet;
use loadprint_cpulist::interrupts::of_device;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

/// The root of procfs.
pub const PROC: &str = "/proc";
/// The root of sysfs.
pub const SYS: &str = "/sys";

/// An interrupt and its affinity before it was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub irq: u32,
    pub device: String,
    pub name: String,
    /// In the list format.
    pub cpus: String,
}

/// The interrupts of the devices with their present affinities.
///
/// # Errors
/// When a device does not exist or has no interrupts.
pub fn find(proc: &Path, sys: &Path, devices: &[String]) -> Result<Vec<Moved>> {
    let mut found = Vec::new();
    for device in devices {
        let Some(interrupts) = of_device(proc, sys, device) else {
            bail!(
                "no block device and no network interface `{device}`; see /sys/class/block and /sys/class/net"
            );
        };
        if interrupts.is_empty() {
            bail!("{device} has no interrupts: it is a virtual device; omit it");
        }
        for interrupt in interrupts {
            let path = affinity(proc, interrupt.number);
            let cpus = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            found.push(Moved {
                irq: interrupt.number,
                device: device.clone(),
                name: interrupt.name,
                cpus: cpus.trim().to_owned(),
            });
        }
    }
    Ok(found)
}

/// Moves them; returns those that moved, and those that the kernel refused with its reason.
pub fn move_to(proc: &Path, cpus: &CpuSet, found: &[Moved]) -> Value {
    let (mut moved, mut refused) = (Vec::new(), Vec::new());
    for interrupt in found {
        let mut entry = json!({
            "device": interrupt.device, "irq": interrupt.irq, "name": interrupt.name, "cpus": interrupt.cpus
        });
        match fs::write(affinity(proc, interrupt.irq), cpus.to_string()) {
            Ok(()) => moved.push(entry),
            Err(error) => {
                entry["error"] = json!(error.to_string());
                refused.push(entry);
            }
        }
    }
    json!({"cpus": cpus.to_string(), "moved": moved, "refused": refused})
}

/// Restores the affinity of one, unless it is unchanged or the device has been removed.
pub fn restore(proc: &Path, moved: &Moved) -> Result<()> {
    let path = affinity(proc, moved.irq);
    match fs::read_to_string(&path) {
        Ok(now) if now.trim() == moved.cpus => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => fs::write(&path, &moved.cpus).with_context(|| {
            format!(
                "interrupt {} ({}) to CPUs {}: {}",
                moved.irq,
                moved.name,
                moved.cpus,
                path.display()
            )
        }),
    }
}

fn affinity(proc: &Path, irq: u32) -> PathBuf {
    proc.join(format!("irq/{irq}/smp_affinity_list"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A disk with interrupts 30 and 31, below proc and sys.
    fn host() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let function = root.path().join("sys/devices/pci0000:00/0000:00:02.0");
        fs::create_dir_all(root.path().join("sys/class/block")).unwrap();
        for dir in ["virtio1/block/vda", "msi_irqs"] {
            fs::create_dir_all(function.join(dir)).unwrap();
        }
        symlink(
            function.join("virtio1/block/vda"),
            root.path().join("sys/class/block/vda"),
        )
        .unwrap();
        for (irq, cpus) in [(30, "0-3\n"), (31, "2\n")] {
            fs::write(function.join(format!("msi_irqs/{irq}")), "msix\n").unwrap();
            let proc = root.path().join(format!("proc/irq/{irq}"));
            fs::create_dir_all(&proc).unwrap();
            fs::write(proc.join("smp_affinity_list"), cpus).unwrap();
            let kernel = root.path().join(format!("sys/kernel/irq/{irq}"));
            fs::create_dir_all(&kernel).unwrap();
            fs::write(kernel.join("actions"), format!("virtio1-req.{irq}\n")).unwrap();
        }
        root
    }

    fn found(root: &Path) -> Vec<Moved> {
        find(&root.join("proc"), &root.join("sys"), &["vda".to_owned()]).unwrap()
    }

    #[test]
    fn interrupts_move_and_return() {
        let host = host();
        let proc = host.path().join("proc");
        let now = |irq| {
            fs::read_to_string(affinity(&proc, irq))
                .unwrap()
                .trim()
                .to_owned()
        };
        let found = found(host.path());
        let reply = move_to(&proc, &"0-1".parse().unwrap(), &found);
        assert_eq!((now(30), now(31)), ("0-1".to_owned(), "0-1".to_owned()));
        assert_eq!(reply["moved"][1]["cpus"], "2");
        // The device of 31 is removed meanwhile.
        fs::remove_dir_all(proc.join("irq/31")).unwrap();
        for interrupt in &found {
            restore(&proc, interrupt).unwrap();
        }
        assert_eq!(now(30), "0-3");
    }

    #[test]
    fn a_refusal_is_reported_and_the_others_move() {
        let host = host();
        let proc = host.path().join("proc");
        let found = found(host.path());
        fs::remove_file(affinity(&proc, 30)).unwrap();
        fs::create_dir(affinity(&proc, 30)).unwrap();
        let reply = move_to(&proc, &"0".parse().unwrap(), &found);
        assert_eq!(reply["moved"].as_array().unwrap().len(), 1);
        assert_eq!(reply["refused"][0]["irq"], 30);
        assert!(
            reply["refused"][0]["error"]
                .as_str()
                .unwrap()
                .contains("os error"),
            "{reply}"
        );
        let error = format!("{:#}", restore(&proc, &found[0]).unwrap_err());
        assert!(
            error.starts_with("interrupt 30 (virtio1-req.30) to CPUs 0-3: "),
            "{error}"
        );
    }
}
