//! Reads the performance statistics of Amazon volumes, an NVMe log page.
//!
//! Only they show the time in which limits of a volume or of the instance delayed I/O; elsewhere
//! requests just look slow. Each read sends a command to the device and needs
//! CAP_SYS_ADMIN.

use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;

use super::numbered;
use crate::prelude::*;
use loadprint_cpulist::small_files::line;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "nvme",
    "time in which the limits of cloud volumes delayed I/O",
    &SCHEMA,
    open,
)
.read_at(Cadence::Nth)
.live();

static ENTITY: &[Text] = &[text("controller")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

const AMAZON: &str = "NVMe log page D0h of Amazon volumes";

static COLUMNS: &[Column] = columns! {
    counter(Microsecond) "volume_iops_exceeded_us", "time over the IOPS limit of the volume", AMAZON, lower;
    counter(Microsecond) "volume_throughput_exceeded_us",
        "time over the throughput limit of the volume", AMAZON, lower;
    counter(Microsecond) "instance_iops_exceeded_us",
        "time over the IOPS limit of the instance", AMAZON, lower;
    counter(Microsecond) "instance_throughput_exceeded_us",
        "time over the throughput limit of the instance", AMAZON, lower;
};

#[derive(Debug)]
struct Watched {
    name: String,
    controller: Controller,
    /// The namespace of Amazon's page.
    namespace: u32,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let root = host.sys("class/nvme");
    let (mut watched, mut refused) = (vec![], None);
    for name in numbered(&root, "nvme") {
        let model = line(&root.join(&name).join("model")).unwrap_or_default();
        let Some(namespace) = amazon_namespace(&model) else {
            continue;
        };
        let opened = Controller::open(&format!("/dev/{name}")).and_then(|mut controller| {
            controller.amazon_page(namespace)?;
            Ok(controller)
        });
        match opened {
            Ok(controller) => watched.push(Watched {
                name,
                controller,
                namespace,
            }),
            Err(error) => {
                let fix = match error.kind() {
                    ErrorKind::PermissionDenied => "; run as root or with CAP_SYS_ADMIN",
                    _ => "",
                };
                refused.get_or_insert(format!("/dev/{name}: {error}{fix}"));
            }
        }
    }
    if watched.is_empty() {
        let none = format!(
            "{}: no NVMe device of Amazon; others do not report the time over their limits",
            root.display()
        );
        return Err(NotRunning::Unavailable(refused.unwrap_or(none)));
    }
    Ok(Background::spawn("nvme", move |rows| sample(&mut watched, rows)))
}

/// The namespace of Amazon's page: volumes have it at their only namespace, instance storage at all
/// namespaces.
fn amazon_namespace(model: &str) -> Option<u32> {
    if model.starts_with("Amazon Elastic Block Store") {
        Some(1)
    } else if model.starts_with("Amazon EC2 NVMe Instance Storage") {
        Some(u32::MAX)
    } else {
        None
    }
}

fn sample(watched: &mut [Watched], rows: &mut Rows) -> Result<(), ProbeError> {
    for device in watched {
        // An older device may lack the page.
        let page = device.controller.amazon_page(device.namespace);
        if let Some(cells) = page.ok().and_then(parse_amazon) {
            rows.row(&[device.name.as_bytes()]);
            cells.iter().for_each(|cell| rows.uint_or_null(*cell));
        }
    }
    if rows.is_empty() {
        return Err(ProbeError::Source("no NVMe device answers; see dmesg".to_owned()));
    }
    Ok(())
}

/// Parses Amazon's page: magic, version, six numbers of eight bytes about requests, then the four times
/// (Amazon EBS user guide, "detailed performance statistics"); `None` if it starts with neither of the two
/// magics.
#[must_use]
pub fn parse_amazon(page: &[u8]) -> Option<[Option<u64>; 4]> {
    const VOLUME_MAGIC: u64 = 0x3C23_B510;
    const INSTANCE_MAGIC: u64 = 0xEC2C_0D7E;
    let magic = number(page, 0, 4)?;
    let [volume_iops, volume_throughput, iops, throughput] =
        [56, 64, 72, 80].map(|offset| number(page, offset, 8));
    match magic {
        VOLUME_MAGIC => Some([volume_iops, volume_throughput, iops, throughput]),
        // Instance storage has no volume limits.
        INSTANCE_MAGIC => Some([None, None, iops, throughput]),
        _ => None,
    }
}

/// A little-endian number of up to eight bytes.
fn number(page: &[u8], offset: usize, bytes: usize) -> Option<u64> {
    let field = page.get(offset..offset + bytes)?.iter().rev();
    Some(field.fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Debug, Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    words_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

const GET_LOG_PAGE: u8 = 0x02;
/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`
const ADMIN_COMMAND: u32 = 3 << 30 | (size_of::<Command>() as u32) << 16 | (b'N' as u32) << 8 | 0x41;
/// Identifier and length of Amazon's page.
const PAGE: u32 = 0xD0;
const LENGTH: usize = 4096;
const PATIENCE_MS: u32 = 5000;

/// The character device of a controller.
#[derive(Debug)]
pub struct Controller {
    device: File,
    page: Vec<u8>,
}

impl Controller {
    /// Opens it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &str) -> io::Result<Self> {
        Ok(Self {
            device: File::open(path)?,
            page: vec![],
        })
    }

    /// Reads Amazon's page of a namespace.
    ///
    /// # Errors
    /// When the kernel refuses the command, or the device does not have the page.
    pub fn amazon_page(&mut self, namespace: u32) -> io::Result<&[u8]> {
        self.page.clear();
        self.page.resize(LENGTH, 0);
        let mut command = Command {
            opcode: GET_LOG_PAGE,
            namespace,
            address: self.page.as_mut_ptr() as u64,
            data_length: LENGTH as u32,
            // The length is the number of four-byte words, minus one.
            words_10_15: [PAGE | ((LENGTH as u32 / 4 - 1) << 16), 0, 0, 0, 0, 0],
            timeout_ms: PATIENCE_MS,
            ..Command::default()
        };
        // SAFETY: `command` has the layout of the kernel and outlives the call; `address` and
        // `data_length` are those of `page`, which is borrowed exclusively.
        let result = unsafe { libc::ioctl(self.device.as_raw_fd(), ADMIN_COMMAND as _, &mut command) };
        match result {
            0 => Ok(&self.page),
            status if status > 0 => Err(io::Error::other(format!(
                "the device answers with NVMe status {status:#x}"
            ))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amazon_page_of_a_volume() {
        let mut page = vec![0; 4096];
        page[..4].copy_from_slice(&0x3C23_B510_u32.to_le_bytes());
        for index in 0..11 {
            page[8 + 8 * index..16 + 8 * index].copy_from_slice(&(1000 + index as u64).to_le_bytes());
        }
        assert_eq!(parse_amazon(&page), Some([1006, 1007, 1008, 1009].map(Some)));
        assert_eq!(parse_amazon(&page[..70]), Some([Some(1006), None, None, None]));
        page[..4].copy_from_slice(&0xEC2C_0D7E_u32.to_le_bytes());
        assert_eq!(parse_amazon(&page), Some([None, None, Some(1008), Some(1009)]));
        page[..4].copy_from_slice(&[0; 4]);
        assert_eq!(parse_amazon(&page), None);
        assert_eq!(parse_amazon(&[]), None);
    }

    #[test]
    fn amazon_devices_have_the_page() {
        assert_eq!(
            amazon_namespace("Amazon Elastic Block Store              "),
            Some(1)
        );
        assert_eq!(
            amazon_namespace("Amazon EC2 NVMe Instance Storage"),
            Some(u32::MAX)
        );
        assert_eq!(amazon_namespace("SAMSUNG MZQL2"), None);
    }

    #[test]
    fn command_has_the_number_and_size_of_the_kernel() {
        assert_eq!(size_of::<Command>(), 72);
        assert_eq!(ADMIN_COMMAND, 0xC048_4E41);
    }

    #[test]
    fn device_that_is_not_a_controller_refuses() {
        let mut null = Controller::open("/dev/null").unwrap();
        assert_eq!(
            null.amazon_page(1).unwrap_err().raw_os_error(),
            Some(libc::ENOTTY)
        );
    }
}
