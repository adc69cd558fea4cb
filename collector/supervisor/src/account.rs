//! Looks up users and groups by name or number in the passwd(5) and group(5) files of the process's
//! root directory. Other name services (LDAP, sssd) are not queried; use numbers with them.

use std::fs;
use std::path::Path;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

/// The user and the groups of a process.
#[derive(Debug, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Login name and home directory, if passwd has the user.
    pub login: Option<(String, String)>,
}

struct User<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
}

impl Account {
    /// Looks up `USER[:GROUP]` in a root directory.
    pub fn resolve(spec: &str, root: &Path) -> Result<Self> {
        let (user, group) = match spec.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (spec, None),
        };
        let passwd_path = root.join("etc/passwd");
        let group_path = root.join("etc/group");
        // Numbers work in a root that has no such files.
        let passwd = fs::read_to_string(&passwd_path).unwrap_or_default();
        let groups = fs::read_to_string(&group_path).unwrap_or_default();
        Self::find(user, group, &passwd, &groups).with_context(|| {
            format!(
                "--user {spec}: not found in {} and {}",
                passwd_path.display(),
                group_path.display()
            )
        })
    }

    fn find(user: &str, group: Option<&str>, passwd: &str, groups: &str) -> Result<Self> {
        let entry = passwd
            .lines()
            .filter_map(user_entry)
            .find(|entry| entry.name == user || user.parse() == Ok(entry.uid));
        let (uid, primary_gid) = match (&entry, user.parse::<u32>()) {
            (Some(entry), _) => (entry.uid, Some(entry.gid)),
            (None, Ok(uid)) => (uid, None),
            (None, Err(_)) => bail!("no user `{user}`"),
        };
        let gid = match group {
            Some(name) => match groups
                .lines()
                .filter_map(group_entry)
                .find(|entry| entry.0 == name)
            {
                Some((_, gid, _)) => gid,
                None => name.parse().with_context(|| format!("no group `{name}`"))?,
            },
            None => {
                primary_gid.with_context(|| format!("user {uid} has no passwd entry; write {uid}:GROUP"))?
            }
        };
        let name = entry.as_ref().map(|entry| entry.name);
        let is_member = |members: &str| members.split(',').any(|member| Some(member) == name);
        let mut supplementary: Vec<u32> = groups
            .lines()
            .filter_map(group_entry)
            .filter(|(_, _, members)| is_member(members))
            .map(|(_, gid, _)| gid)
            .collect();
        supplementary.push(gid);
        supplementary.sort_unstable();
        supplementary.dedup();
        let login = entry.map(|entry| (entry.name.to_owned(), entry.home.to_owned()));
        Ok(Self {
            uid,
            gid,
            groups: supplementary,
            login,
        })
    }
}

/// `name:password:uid:gid:gecos:home:shell`
fn user_entry(line: &str) -> Option<User<'_>> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    let home = fields.nth(1)?;
    Some(User { name, uid, gid, home })
}

/// `name:password:gid:member,member`
fn group_entry(line: &str) -> Option<(&str, u32, &str)> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let gid = fields.nth(1)?.parse().ok()?;
    Some((name, gid, fields.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/bash\nmysql:x:101:103:MySQL,,,:/nonexistent:/bin/false\n";
    const GROUP: &str = "root:x:0:\nmysql:x:103:\nssl-cert:x:104:postgres,mysql\n";

    fn find(user: &str, group: Option<&str>) -> Result<Account> {
        Account::find(user, group, PASSWD, GROUP)
    }

    #[test]
    fn a_user_name_selects_its_groups() {
        let account = find("mysql", None).unwrap();
        assert_eq!(
            (account.uid, account.gid, account.groups),
            (101, 103, vec![103, 104])
        );
        assert_eq!(
            account.login,
            Some(("mysql".to_owned(), "/nonexistent".to_owned()))
        );
    }

    #[test]
    fn numbers_need_no_entry_but_a_group() {
        let account = find("4000", Some("ssl-cert")).unwrap();
        assert_eq!((account.uid, account.gid, account.login), (4000, 104, None));
        assert!(find("4000", None).unwrap_err().to_string().contains("4000:GROUP"));
    }

    #[test]
    fn errors_name_unknown_users_and_groups() {
        assert!(find("mysqll", None).unwrap_err().to_string().contains("`mysqll`"));
        assert!(
            find("mysql", Some("nogroup"))
                .unwrap_err()
                .to_string()
                .contains("`nogroup`")
        );
    }
}
