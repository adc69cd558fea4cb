//! Reads NVMe log pages: SMART / health of every controller, and the performance statistics of
//! Amazon volumes.
//!
//! Only these statistics show the time in which limits of a volume or of the instance delayed I/O;
//! elsewhere requests just look slow. Each read sends a command to the device and needs
//! CAP_SYS_ADMIN.

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;
use rustix::thread::CapabilitySet;

use super::log_page::Controller;
use super::log_page::LogPage;
use super::numbered;
use super::word;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::background::Background;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "nvme",
    "health of NVMe devices, and time in which the limits of cloud volumes delayed I/O",
    &SCHEMA,
    open,
)
.every_nth()
.live()
.with_capabilities(CapabilitySet::SYS_ADMIN);

static ENTITY: &[Text] = &[text("controller")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

const SMART: &str = "NVMe log page 02h";
const AMAZON: &str = "NVMe log page D0h of Amazon volumes";

const fn health(name: &'static str, unit: Unit, help: &'static str) -> Column {
    Column::counter(name, unit, help, SMART)
}

const fn state(name: &'static str, unit: Unit, help: &'static str) -> Column {
    Column::gauge(name, unit, help, SMART)
}

const fn volume(name: &'static str, unit: Unit, help: &'static str) -> Column {
    Column::counter(name, unit, help, AMAZON)
}

static COLUMNS: &[Column] = &[
    state("critical_warning", Unit::One, "bits of the active warnings").lower(),
    state("temperature", Unit::Kelvin, "temperature of the device").lower(),
    state("available_spare", Unit::Percent, "remaining spare capacity").higher(),
    state(
        "percentage_used",
        Unit::Percent,
        "used part of the life of the device, estimated by the vendor",
    )
    .lower(),
    health(
        "data_units_read",
        Unit::One,
        "data read, in units of 512,000 bytes",
    ),
    health(
        "data_units_written",
        Unit::One,
        "data written, in units of 512,000 bytes",
    ),
    health("host_reads", Unit::One, "read commands"),
    health("host_writes", Unit::One, "write commands"),
    health("busy_minutes", Unit::One, "minutes with a command in flight"),
    health("media_errors", Unit::One, "unrecovered data integrity errors").lower(),
    health(
        "throttles_light",
        Unit::One,
        "transitions to light thermal throttling",
    )
    .lower(),
    health(
        "throttles_heavy",
        Unit::One,
        "transitions to heavy thermal throttling",
    )
    .lower(),
    health(
        "throttled_light_s",
        Unit::Second,
        "time in light thermal throttling",
    )
    .lower(),
    health(
        "throttled_heavy_s",
        Unit::Second,
        "time in heavy thermal throttling",
    )
    .lower(),
    volume("volume_reads", Unit::One, "reads completed by the volume"),
    volume("volume_writes", Unit::One, "writes completed by the volume"),
    volume("volume_read_bytes", Unit::Byte, "read from the volume"),
    volume("volume_write_bytes", Unit::Byte, "written to the volume"),
    volume("volume_read_us", Unit::Microsecond, "time of all reads").lower(),
    volume("volume_write_us", Unit::Microsecond, "time of all writes").lower(),
    volume(
        "volume_iops_exceeded_us",
        Unit::Microsecond,
        "time over the IOPS limit of the volume",
    )
    .lower(),
    volume(
        "volume_throughput_exceeded_us",
        Unit::Microsecond,
        "time over the throughput limit of the volume",
    )
    .lower(),
    volume(
        "instance_iops_exceeded_us",
        Unit::Microsecond,
        "time over the IOPS limit of the instance",
    )
    .lower(),
    volume(
        "instance_throughput_exceeded_us",
        Unit::Microsecond,
        "time over the throughput limit of the instance",
    )
    .lower(),
    Column::gauge(
        "volume_queue_length",
        Unit::One,
        "requests waiting at the volume",
        AMAZON,
    )
    .lower(),
];

const HEALTH: usize = 14;
const VOLUME: usize = 11;

#[derive(Debug)]
struct Watched {
    name: String,
    controller: Controller,
    /// The namespace of the vendor's page, if the device has that page.
    amazon: Option<u32>,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let root = host.sys("class/nvme");
    let mut watched = vec![];
    for name in numbered(&root, "nvme") {
        let device = format!("/dev/{name}");
        let controller = Controller::open(&device)
            .map_err(|error| NotRunning::Unavailable(format!("{device}: {error}; run as root")))?;
        let model = word(&root.join(&name).join("model")).unwrap_or_default();
        watched.push(Watched {
            name,
            controller,
            amazon: amazon_namespace(&model),
        });
    }
    let Some(first) = watched.first_mut() else {
        return Err(NotRunning::Unavailable(format!(
            "{}: no NVMe device; the probe needs one",
            root.display()
        )));
    };
    if let Err(error) = first.controller.log(LogPage::Health) {
        return Err(NotRunning::Unavailable(format!(
            "/dev/{}: {error}; run as root or with CAP_SYS_ADMIN",
            first.name
        )));
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
    for Watched {
        name,
        controller,
        amazon,
    } in watched
    {
        // A volume may lack the health page, and an older one the vendor's page: their values are
        // null.
        let health = controller
            .log(LogPage::Health)
            .map(parse_health)
            .unwrap_or([None; HEALTH]);
        let volume = match *amazon {
            Some(namespace) => match controller.log(LogPage::Amazon(namespace)) {
                Ok(page) => parse_amazon(page).unwrap_or([None; VOLUME]),
                Err(_) => [None; VOLUME],
            },
            None => [None; VOLUME],
        };
        if health.iter().chain(&volume).any(Option::is_some) {
            rows.row(&[name.as_bytes()]);
            health
                .iter()
                .chain(&volume)
                .for_each(|cell| rows.uint_or_null(*cell));
        }
    }
    if rows.is_empty() {
        return Err(ProbeError::Source("no NVMe device answers; see dmesg".to_owned()));
    }
    Ok(())
}

/// Parses the SMART / health log page (NVM Express Base Specification 2.0, figure 207); values
/// after the end of a short page are null.
#[must_use]
pub fn parse_health(page: &[u8]) -> [Option<u64>; HEALTH] {
    let short = |offset: usize, bytes: usize| number(page, offset, bytes);
    [
        short(0, 1),
        // A device without a sensor reports 0 K.
        short(1, 2).filter(|kelvin| *kelvin > 0),
        short(3, 1),
        short(5, 1),
        long(page, 32),
        long(page, 48),
        long(page, 64),
        long(page, 80),
        long(page, 96),
        long(page, 160),
        short(216, 4),
        short(220, 4),
        short(224, 4),
        short(228, 4),
    ]
}

/// Parses Amazon's page: magic, version, then eleven numbers of eight bytes (Amazon EBS user guide,
/// "detailed performance statistics"); `None` if it starts with neither of the two magics.
#[must_use]
pub fn parse_amazon(page: &[u8]) -> Option<[Option<u64>; VOLUME]> {
    const VOLUME_MAGIC: u64 = 0x3C23_B510;
    const INSTANCE_MAGIC: u64 = 0xEC2C_0D7E;
    let magic = number(page, 0, 4)?;
    if magic != VOLUME_MAGIC && magic != INSTANCE_MAGIC {
        return None;
    }
    let mut cells = [None; VOLUME];
    for (index, cell) in cells.iter_mut().enumerate() {
        *cell = number(page, 8 + 8 * index, 8);
    }
    if magic == INSTANCE_MAGIC {
        // Instance storage has no volume limits.
        cells[6] = None;
        cells[7] = None;
    }
    Some(cells)
}

/// A little-endian number of up to eight bytes.
fn number(page: &[u8], offset: usize, bytes: usize) -> Option<u64> {
    let field = page.get(offset..offset + bytes)?;
    Some(
        field
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    )
}

/// A number of sixteen bytes; `None` if it does not fit into 64 bits.
fn long(page: &[u8], offset: usize) -> Option<u64> {
    let high = number(page, offset + 8, 8)?;
    number(page, offset, 8).filter(|_| high == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(page: &mut [u8], offset: usize, bytes: &[u8]) {
        page[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    #[test]
    fn health_page_of_a_drive() {
        let mut page = vec![0; 512];
        put(&mut page, 1, &311u16.to_le_bytes());
        put(&mut page, 3, &[100, 10, 3]);
        put(&mut page, 32, &8_123_456u128.to_le_bytes());
        put(&mut page, 48, &(1u128 << 64).to_le_bytes());
        put(&mut page, 160, &2u128.to_le_bytes());
        put(&mut page, 216, &7u32.to_le_bytes());
        put(&mut page, 228, &90u32.to_le_bytes());
        let health = parse_health(&page);
        assert_eq!(
            health[..5],
            [Some(0), Some(311), Some(100), Some(3), Some(8_123_456)]
        );
        assert_eq!(health[5], None, "2^64 units do not fit");
        assert_eq!(health[9..], [Some(2), Some(7), Some(0), Some(0), Some(90)]);
        assert_eq!(parse_health(&page[..40])[4], None);
        assert_eq!(COLUMNS.len(), HEALTH + VOLUME);
    }

    #[test]
    fn amazon_page_of_a_volume() {
        let mut page = vec![0; 4096];
        put(&mut page, 0, &0x3C23_B510_u32.to_le_bytes());
        for index in 0..VOLUME {
            put(&mut page, 8 + 8 * index, &(1000 + index as u64).to_le_bytes());
        }
        let volume = parse_amazon(&page).unwrap();
        assert_eq!(
            (volume[0], volume[6], volume[10]),
            (Some(1000), Some(1006), Some(1010))
        );
        put(&mut page, 0, &0xEC2C_0D7E_u32.to_le_bytes());
        let instance = parse_amazon(&page).unwrap();
        assert_eq!((instance[6], instance[7], instance[8]), (None, None, Some(1008)));
        put(&mut page, 0, &[0; 4]);
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
}
