//! Identifies the machine independently of its host name, and its cloud instance. Reads files only,
//! never the network.
//!
//! `/etc/machine-id` is confidential (machine-id(5)), and so is the firmware's UUID: a recording
//! contains hashes of them, which are stable across boots and cannot be reversed. Cloud facts come
//! from DMI and from cloud-init's `instance-data.json`, in which cloud-init redacts secrets for
//! users other than root.

use std::fs;
use std::path::Path;

use loadprint_probes::Host;
use ring::hmac;
use serde_json::Value;

use super::line;

/// The application ID in the hash of the machine ID, as in `systemd-id128 machine-id
/// --app-specific=`.
const APPLICATION: [u8; 16] = 0x6bdd_fc42_a84d_4510_98c0_6fb5_9ba3_e193_u128.to_be_bytes();
/// cloud-init's file that all users can read.
const CLOUD_INIT: &str = "run/cloud-init/instance-data.json";
/// JSON pointers to the instance type by data source, in cloud-init's order of preference.
const TYPES: &[&str] = &[
    "/v1/instance_type",
    "/ds/meta_data/instance-type",
    "/ds/meta_data/instance_type",
    "/ds/meta_data/imds/compute/vmSize",
];

/// Facts that distinguish this machine from others; `None` if no source has them or this user
/// cannot read them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Hash of `/etc/machine-id`.
    pub machine_id: Option<String>,
    /// Hash of the UUID in DMI, which only root may read.
    pub product_uuid: Option<String>,
    /// The cloud's name of the instance. A UUID is hashed: on Azure and OpenStack it is the
    /// firmware's.
    pub instance_id: Option<String>,
    /// The instance type.
    pub instance_type: Option<String>,
    /// cloud-init's name of the cloud.
    pub cloud: Option<String>,
}

/// Reads the identity; `root` contains `etc` and `run`.
pub fn read(host: &Host, root: &Path) -> Identity {
    let dmi = |name: &str| line(&host.sys(&format!("class/dmi/id/{name}")));
    let cloud_init = fs::read(root.join(CLOUD_INIT))
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
            .or_else(|| word(&cloud_init, "/v1/instance_id"))
            .map(|id| hashed(&id).unwrap_or(id)),
        instance_type: product.or_else(|| TYPES.iter().find_map(|pointer| word(&cloud_init, pointer))),
        cloud: word(&cloud_init, "/v1/cloud_name").or_else(|| amazon.then(|| "aws".to_owned())),
    }
}

/// A string or number of cloud-init's file that is not redacted.
fn word(cloud_init: &Value, pointer: &str) -> Option<String> {
    let text = match cloud_init.pointer(pointer)? {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty() && !text.starts_with("redacted")).then_some(text)
}

/// The hash of an ID of 128 bits, as sd_id128_get_machine_app_specific(3) computes it. The ID is in
/// hexadecimal with or without dashes. `None` for other text: a machine before its first boot has
/// `uninitialized`, and firmware without an ID has zeros or ones.
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
    const HASHED: &str = "94f0c4dbec614d739fea314069eeb46f"; // printed by systemd-id128 for MACHINE and APPLICATION

    /// The identity of a host with these files under its root; sysfs is at `sys`.
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
        let identity = identity(&[
            ("etc/machine-id", &format!("{MACHINE}\n")),
            ("sys/class/dmi/id/product_uuid", uuid),
        ]);
        assert_eq!(identity.machine_id.as_deref(), Some(HASHED));
        assert_eq!(identity.product_uuid.as_deref(), Some(HASHED));
        assert_eq!(
            (identity.instance_id, identity.instance_type, identity.cloud),
            (None, None, None)
        );
    }

    #[test]
    fn text_that_is_not_an_id_is_not_hashed() {
        for text in [
            "uninitialized\n",
            "",
            "0123",
            "+123456789abcdef0123456789abcdef",
            "00000000000000000000000000000000",
            "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        ] {
            let identity = identity(&[("etc/machine-id", text), ("sys/class/dmi/id/product_uuid", text)]);
            assert_eq!(identity, Identity::default(), "{text:?}");
        }
    }

    #[test]
    fn amazon_has_instance_and_type_in_dmi() {
        let dmi = [
            ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n"),
            ("sys/class/dmi/id/board_asset_tag", "i-0123456789abcdef0\n"),
            ("sys/class/dmi/id/product_name", "m5.large\n"),
        ];
        let amazon = identity(&dmi);
        assert_eq!(amazon.instance_id.as_deref(), Some("i-0123456789abcdef0"));
        assert_eq!(amazon.instance_type.as_deref(), Some("m5.large"));
        assert_eq!(amazon.cloud.as_deref(), Some("aws"));
        // Other vendors store the model and an asset tag there.
        assert_eq!(identity(&dmi[1..]), Identity::default());
    }

    #[test]
    fn other_clouds_are_read_from_cloud_init() {
        let cloud_init = |data: Value| identity(&[(CLOUD_INIT, &data.to_string())]);
        let azure = cloud_init(json!({
            "v1": {"cloud_name": "azure", "instance_id": "5cbb1b4a"},
            "ds": {"meta_data": {"imds": {"compute": {"vmSize": "Standard_D4s_v5"}}}},
        }));
        assert_eq!(azure.instance_id.as_deref(), Some("5cbb1b4a"));
        assert_eq!(azure.instance_type.as_deref(), Some("Standard_D4s_v5"));
        assert_eq!(azure.cloud.as_deref(), Some("azure"));
        let redacted = cloud_init(json!({
            "v1": {"cloud_name": "gce", "instance_id": 42},
            "ds": {"meta_data": {"instance-type": "redacted for non-root user"}},
        }));
        assert_eq!(
            (redacted.instance_id.as_deref(), redacted.instance_type),
            (Some("42"), None)
        );
        // A UUID is the firmware's, which only root can read.
        let uuid = cloud_init(json!({"v1": {"instance_id": "01234567-89ab-cdef-0123-456789abcdef"}}));
        assert_eq!(uuid.instance_id.as_deref(), Some(HASHED));
        // A truncated file and one of another structure.
        assert_eq!(identity(&[(CLOUD_INIT, "{\"v1\": {")]), Identity::default());
        assert_eq!(cloud_init(json!([{"v1": null}])), Identity::default());
    }
}
