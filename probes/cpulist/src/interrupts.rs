//! Finds the interrupts of a block device or network interface, and the CPUs that serve them. Paravirtual
//! devices without own interrupts (Xen, Hyper-V) have none here.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::small_files::line;
use crate::small_files::names;
use crate::small_files::numbers;

/// An interrupt with a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number in `/proc/irq`.
    pub number: u32,
    /// The name of its handler, such as `nvme0q1`.
    pub name: String,
    /// The CPUs that serve it, in the list format; `None` if the kernel does not report them.
    pub cpus: Option<String>,
}

/// The interrupts of a device in ascending order, under these roots of `/proc` and `/sys`; `None` if there is
/// no such block device or network interface.
#[must_use]
pub fn of_device(proc: &Path, sys: &Path, device: &str) -> Option<Vec<Interrupt>> {
    if device.is_empty() || device.contains('/') || device.starts_with('.') {
        return None;
    }
    // Links in it are absolute after fs::canonicalize.
    let sys = &fs::canonicalize(sys).ok()?;
    let path = ["class/block", "class/net"]
        .iter()
        .find_map(|class| fs::canonicalize(sys.join(class).join(device)).ok())?;
    let mut numbers: Vec<u32> = controllers(&path)
        .iter()
        .flat_map(|controller| numbers_of(sys, controller))
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let interrupt = |number: u32| {
        Some(Interrupt {
            number,
            name: handler(sys, number)?,
            cpus: serving_cpus(proc, number),
        })
    };
    Some(numbers.into_iter().filter_map(interrupt).collect())
}

/// The CPUs that serve an interrupt. The effective ones are those that the kernel chose among the allowed
/// ones; only some interrupt controllers report them.
fn serving_cpus(proc: &Path, number: u32) -> Option<String> {
    let line = |file: &str| line(&proc.join(format!("irq/{number}/{file}")));
    line("effective_affinity_list").or_else(|| line("smp_affinity_list"))
}

/// The paths in sysfs that lead to the device's interrupts: its own path, or those of the controllers of an
/// NVMe namespace with several paths, which is a virtual device.
fn controllers(device: &Path) -> Vec<PathBuf> {
    let subsystem = device.parent().filter(|parent| {
        parent
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("nvme-subsys"))
    });
    let Some(subsystem) = subsystem else {
        return vec![device.to_owned()];
    };
    names(subsystem)
        .iter()
        .filter(|name| {
            let number = name.strip_prefix("nvme");
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        })
        .filter_map(|name| fs::canonicalize(subsystem.join(name)).ok())
        .collect()
}

/// The interrupts of the nearest device on the way up that has any: the PCI function of a disk or interface.
/// Only a PCI function has the file `irq`, also with 0, so that the search stops below its bridge.
fn numbers_of(sys: &Path, device: &Path) -> Vec<u32> {
    for path in device.ancestors().take_while(|path| path.starts_with(sys)) {
        let messages: Vec<u32> = numbers(&path.join("msi_irqs"));
        if !messages.is_empty() {
            return messages;
        }
        if let Some(text) = line(&path.join("irq")) {
            return text.parse().into_iter().filter(|number| *number > 0).collect();
        }
    }
    by_name(sys, device)
}

/// Interrupts whose handler has the name of the device or of one above it, as of virtio without PCI.
fn by_name(sys: &Path, device: &Path) -> Vec<u32> {
    if device.starts_with(sys.join("devices/virtual")) {
        return vec![];
    }
    let parts: Vec<_> = device
        .iter()
        .filter_map(|part| part.to_str())
        .filter(|part| part.ends_with(|last: char| last.is_ascii_digit()))
        .collect();
    let is_of_device = |handler: &str| {
        parts.iter().any(|part| {
            handler == *part
                || handler
                    .strip_prefix(part)
                    .is_some_and(|rest| rest.starts_with('-'))
        })
    };
    numbers(&sys.join("kernel/irq"))
        .into_iter()
        .filter(|number| handler(sys, *number).is_some_and(|name| name.split(',').any(is_of_device)))
        .collect()
}

/// The names of an interrupt's handlers; `None` without one: nothing is served then.
fn handler(sys: &Path, number: u32) -> Option<String> {
    line(&sys.join(format!("kernel/irq/{number}/actions")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A host below a temporary directory.
    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        /// The canonical path of the root of sysfs.
        fn sys(&self) -> PathBuf {
            self.0.path().canonicalize().unwrap().join("sys")
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, path: &str, target: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::create_dir_all(self.sys().join(target)).unwrap();
            symlink(self.sys().join(target), path).unwrap();
        }

        fn interrupt(&self, number: u32, handler: &str, effective: &str) {
            self.file(
                &format!("sys/kernel/irq/{number}/actions"),
                &format!("{handler}\n"),
            );
            self.file(&format!("proc/irq/{number}/smp_affinity_list"), "0-3\n");
            self.file(
                &format!("proc/irq/{number}/effective_affinity_list"),
                &format!("{effective}\n"),
            );
        }

        fn of(&self, device: &str) -> Option<Vec<(u32, String, String)>> {
            let found = of_device(&self.0.path().join("proc"), &self.sys(), device)?;
            let row = |each: Interrupt| (each.number, each.name, each.cpus.unwrap_or_default());
            Some(found.into_iter().map(row).collect())
        }
    }

    fn row(number: u32, name: &str, cpus: &str) -> (u32, String, String) {
        (number, name.to_owned(), cpus.to_owned())
    }

    #[test]
    fn a_disk_has_the_vectors_of_its_pci_function_and_not_of_the_bridge() {
        let host = Fake::new();
        let function = "devices/pci0000:00/0000:00:01.0/0000:01:00.0";
        host.link(
            "sys/class/block/nvme0n1",
            &format!("{function}/nvme/nvme0/nvme0n1"),
        );
        for vector in [31, 30, 32] {
            host.file(&format!("sys/{function}/msi_irqs/{vector}"), "msix\n");
        }
        host.file("sys/devices/pci0000:00/0000:00:01.0/msi_irqs/20", "msi\n");
        host.interrupt(20, "pcieport", "0");
        host.interrupt(30, "nvme0q0", "0");
        host.interrupt(31, "nvme0q1", "1");
        // Allocated, without a handler.
        host.interrupt(32, "", "2");
        let expected = vec![row(30, "nvme0q0", "0"), row(31, "nvme0q1", "1")];
        assert_eq!(host.of("nvme0n1"), Some(expected));

        fs::remove_dir_all(host.sys().join(function).join("msi_irqs")).unwrap();
        host.file(&format!("sys/{function}/irq"), "0\n");
        assert_eq!(
            host.of("nvme0n1"),
            Some(vec![]),
            "no interrupt is not that of the bridge"
        );
        host.file(&format!("sys/{function}/irq"), "31\n");
        assert_eq!(host.of("nvme0n1"), Some(vec![row(31, "nvme0q1", "1")]));
    }

    #[test]
    fn a_namespace_with_several_paths_has_the_vectors_of_all_controllers() {
        let host = Fake::new();
        let subsystem = "devices/virtual/nvme-subsystem/nvme-subsys0";
        host.link("sys/class/block/nvme0n1", &format!("{subsystem}/nvme0n1"));
        for (controller, vector) in [(0, 40), (1, 50)] {
            let function = format!("devices/pci0000:00/0000:00:0{controller}.0");
            host.link(
                &format!("sys/{subsystem}/nvme{controller}"),
                &format!("{function}/nvme/nvme{controller}"),
            );
            host.file(&format!("sys/{function}/msi_irqs/{vector}"), "msix\n");
            host.interrupt(vector, &format!("nvme{controller}q1"), "2-3");
        }
        let expected = vec![row(40, "nvme0q1", "2-3"), row(50, "nvme1q1", "2-3")];
        assert_eq!(host.of("nvme0n1"), Some(expected));
    }

    #[test]
    fn an_interface_without_pci_is_found_by_the_name_of_its_handler() {
        let host = Fake::new();
        host.link(
            "sys/class/net/eth0",
            "devices/platform/a000.virtio/virtio1/net/eth0",
        );
        host.interrupt(5, "virtio1", "");
        host.interrupt(6, "virtio10", "0");
        host.interrupt(7, "timer,eth0-rx", "1");
        let expected = vec![row(5, "virtio1", "0-3")];
        assert_eq!(host.of("eth0").unwrap()[..1], expected);
        assert_eq!(host.of("eth0").unwrap()[1..], [row(7, "timer,eth0-rx", "1")]);
    }

    #[test]
    fn a_virtual_device_has_none_and_an_unknown_one_is_reported() {
        let host = Fake::new();
        host.link("sys/class/net/lo", "devices/virtual/net/lo");
        host.link("sys/class/net/bond0", "devices/virtual/net/bond0");
        host.interrupt(9, "bond0", "0");
        assert_eq!(host.of("bond0"), Some(vec![]), "of another device of this name");
        assert_eq!(host.of("lo"), Some(vec![]));
        for unknown in ["eth9", "../net/lo", ".", ""] {
            assert_eq!(host.of(unknown), None, "{unknown}");
        }
    }
}
