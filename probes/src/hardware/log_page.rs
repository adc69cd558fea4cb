//! Reads log pages of an NVMe controller (`NVME_IOCTL_ADMIN_CMD`,
//! `include/uapi/linux/nvme_ioctl.h`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A log page.
#[derive(Clone, Copy, Debug)]
pub enum LogPage {
    /// SMART / health information of the whole controller.
    Health,
    /// The page of an Amazon namespace.
    Amazon(u32),
}

impl LogPage {
    /// Identifier of the page, namespace and length in bytes.
    fn parameters(self) -> (u32, u32, usize) {
        match self {
            Self::Health => (0x02, u32::MAX, 512),
            Self::Amazon(namespace) => (0xD0, namespace, 4096),
        }
    }
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

    /// Reads a log page.
    ///
    /// # Errors
    /// When the kernel refuses the command, or the device does not have the page.
    pub fn log(&mut self, page: LogPage) -> io::Result<&[u8]> {
        let (number, namespace, length) = page.parameters();
        self.page.clear();
        self.page.resize(length, 0);
        let mut command = Command {
            opcode: GET_LOG_PAGE,
            namespace,
            address: self.page.as_mut_ptr() as u64,
            data_length: length as u32,
            // The length is the number of four-byte words, minus one.
            words_10_15: [number | ((length as u32 / 4 - 1) << 16), 0, 0, 0, 0, 0],
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
    fn command_has_the_number_and_size_of_the_kernel() {
        assert_eq!(size_of::<Command>(), 72);
        assert_eq!(ADMIN_COMMAND, 0xC048_4E41);
    }

    #[test]
    fn device_that_is_not_a_controller_refuses() {
        let mut null = Controller::open("/dev/null").unwrap();
        assert_eq!(
            null.log(LogPage::Health).unwrap_err().raw_os_error(),
            Some(libc::ENOTTY)
        );
    }
}
