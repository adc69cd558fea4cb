//! Reads log pages of an NVMe controller (`NVME_IOCTL_ADMIN_CMD`,
//! `include/uapi/linux/nvme_ioctl.h`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

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
const AMAZON: u32 = 0xD0;
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
            words_10_15: [AMAZON | ((LENGTH as u32 / 4 - 1) << 16), 0, 0, 0, 0, 0],
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
            null.amazon_page(1).unwrap_err().raw_os_error(),
            Some(libc::ENOTTY)
        );
    }
}
