//! Which machine this is, whatever its host is called, and what a cloud calls it; asked of files, never of the network.
//!
//! `/etc/machine-id` is confidential (machine-id(5)) and so is the firmware's UUID: what is kept is a hash of them that is
//! the same at every boot, and from which nobody gets back to them. Clouds say the rest in DMI or through cloud-init, where
//! it left `instance-data.json`, whose secrets it redacts for those who are not root.

use std::fs;
use std::path::Path;

use loadprint_probes::Host;
use ring::hmac;
use serde_json::Value;

use super::line;

/// Of this program, in place of any other that hashes a machine id: `systemd-id128 machine-id --app-specific=` it.
const APPLICATION: [u8; 16] = 0x6bdd_fc42_a84d_4510_98c0_6fb5_9ba3_e193_u128.to_be_bytes();
/// Where cloud-init puts what everybody may read.
const CLOUD_INIT: &str = "run/cloud-init/instance-data.json";
/// Where sources of cloud-init keep the type, in its own order of preference.
const TYPES: &[&str] = &[
    "/v1/instance_type",
    "/ds/meta_data/instance-type",
    "/ds/meta_data/instance_type",
    "/ds/meta_data/imds/compute/vmSize",
];

/// What tells a machine from others. Absent is what nobody says, or not to this user.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Hash of `/etc/machine-id`.
    pub machine_id: Option<String>,
    /// Hash of the UUID in DMI, which only root may read.
    pub product_uuid: Option<String>,
    /// What its cloud calls the instance; hashed too where that is a UUID, which on Azure and OpenStack is the firmware's.
    pub instance_id: Option<String>,
    /// And its type.
    pub instance_type: Option<String>,
    /// And itself, as cloud-init names clouds.
    pub cloud: Option<String>,
}

/// Reads it; `root` is where `etc` and `run` lie.
pub fn read(host: &Host, root: &Path) -> Identity {
    let dmi = |name: &str| line(&host.sys(&format!("class/dmi/id/{name}")));
    let told = fs::read(root.join(CLOUD_INIT))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
        .unwrap_or_default();
    let amazon = dmi("sys_vendor").is_some_and(|vendor| vendor == "Amazon EC2");
    let tag = dmi("board_asset_tag").filter(|tag| amazon && tag.starts_with("i-"));
    let product = dmi("product_name").filter(|_| amazon);
    Identity {
        machine_id: line(&root.join("etc/machine-id")).and_then(|id| hashed(&id)),
        product_uuid: dmi("product_uuid").and_then(|id| hashed(&id)),
        instance_id: tag
            .or_else(|| word(&told, "/v1/instance_id"))
            .map(|id| hashed(&id).unwrap_or(id)),
        instance_type: product.or_else(|| TYPES.iter().find_map(|place| word(&told, place))),
        cloud: word(&told, "/v1/cloud_name").or_else(|| amazon.then(|| "aws".to_owned())),
    }
}

/// A word or number that cloud-init told, and did not redact.
fn word(told: &Value, place: &str) -> Option<String> {
    let text = match told.pointer(place)? {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty() && !text.starts_with("redacted")).then_some(text)
}

/// Hash of 128 bits, written in hex with dashes or without: what `sd_id128_get_machine_app_specific(3)` makes of a machine id.
/// None for what is no id: a machine that was not set up says `uninitialized`, and firmware zeros or ones.
fn hashed(id: &str) -> Option<String> {
    let digits: String = id.chars().filter(|digit| *digit != '-').collect();
    if digits.len() != 32 || digits.starts_with('+') {
        return None;
    }
    let number = u128::from_str_radix(&digits, 16).ok()?;
    if number == 0 || number == u128::MAX {
        return None;
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, &number.to_be_bytes());
    let tag = hmac::sign(&key, &APPLICATION);
    let mut bytes: [u8; 16] = tag.as_ref().first_chunk().copied()?;
    // The version and variant of a random UUID (RFC 9562), as systemd sets them.
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]
mod tests {
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;

    const MACHINE: &str = "0123456789abcdef0123456789abcdef";
    const MACHINES: &str = "94f0c4dbec614d739fea314069eeb46f"; // of systemd-id128 for this machine and this program

    /// A host with these files, by path under its root; sysfs is `sys`.
    fn identity(files: &[(&str, &str)]) -> Identity {
        let root = TempDir::new().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let host = Host::new(root.path().join("proc"), root.path().join("sys"));
        read(&host, root.path())
    }

    #[test]
    fn ids_are_hashed_as_systemd_hashes_them() {
        let uuid = "01234567-89AB-CDEF-0123-456789ABCDEF\n";
        let found = identity(&[
            ("etc/machine-id", &format!("{MACHINE}\n")),
            ("sys/class/dmi/id/product_uuid", uuid),
        ]);
        assert_eq!(found.machine_id.as_deref(), Some(MACHINES));
        assert_eq!(found.product_uuid.as_deref(), Some(MACHINES));
        assert_eq!(
            (found.instance_id, found.instance_type, found.cloud),
            (None, None, None)
        );
    }

    #[test]
    fn what_is_no_id_is_not_hashed() {
        for text in [
            "uninitialized\n",
            "",
            "0123",
            "+123456789abcdef0123456789abcdef",
            "00000000000000000000000000000000",
            "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        ] {
            let found = identity(&[("etc/machine-id", text), ("sys/class/dmi/id/product_uuid", text)]);
            assert_eq!(found, Identity::default(), "{text:?}");
        }
    }

    #[test]
    fn amazon_says_instance_and_type_in_dmi() {
        let dmi = [
            ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n"),
            ("sys/class/dmi/id/board_asset_tag", "i-0123456789abcdef0\n"),
            ("sys/class/dmi/id/product_name", "m5.large\n"),
        ];
        let found = identity(&dmi);
        assert_eq!(found.instance_id.as_deref(), Some("i-0123456789abcdef0"));
        assert_eq!(found.instance_type.as_deref(), Some("m5.large"));
        assert_eq!(found.cloud.as_deref(), Some("aws"));
        // The same words of another vendor are a model and a sticker.
        assert_eq!(identity(&dmi[1..]), Identity::default());
    }

    #[test]
    fn cloud_init_says_it_elsewhere() {
        let told = |data: Value| identity(&[(CLOUD_INIT, &data.to_string())]);
        let found = told(json!({
            "v1": {"cloud_name": "azure", "instance_id": "5cbb1b4a"},
            "ds": {"meta_data": {"imds": {"compute": {"vmSize": "Standard_D4s_v5"}}}},
        }));
        assert_eq!(found.instance_id.as_deref(), Some("5cbb1b4a"));
        assert_eq!(found.instance_type.as_deref(), Some("Standard_D4s_v5"));
        assert_eq!(found.cloud.as_deref(), Some("azure"));
        let found = told(json!({
            "v1": {"cloud_name": "gce", "instance_id": 42},
            "ds": {"meta_data": {"instance-type": "redacted for non-root user"}},
        }));
        assert_eq!(
            (found.instance_id.as_deref(), found.instance_type),
            (Some("42"), None)
        );
        // A UUID is the one that the firmware has, and only root may read there.
        let found = told(json!({"v1": {"instance_id": "01234567-89ab-cdef-0123-456789abcdef"}}));
        assert_eq!(found.instance_id.as_deref(), Some(MACHINES));
        // A file that is cut off, or of another shape, says nothing.
        assert_eq!(identity(&[(CLOUD_INIT, "{\"v1\": {")]), Identity::default());
        assert_eq!(told(json!([{"v1": null}])), Identity::default());
    }
}
