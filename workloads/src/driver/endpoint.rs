//! Parses the lists of hosts, ports and sockets into server addresses.

use anyhow::Result;
use anyhow::bail;

/// One address. `None` leaves a value to the option file, else to the library's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// `localhost` means the unix socket.
    pub host: Option<String>,
    /// TCP port.
    pub port: Option<u16>,
    /// Path of the unix socket.
    pub socket: Option<String>,
}

impl Endpoint {
    /// The address as text, for messages and results.
    pub fn describe(&self) -> String {
        match (&self.socket, &self.host) {
            (Some(socket), _) => socket.clone(),
            (None, Some(host)) if host == "localhost" => "localhost (unix socket)".to_owned(),
            (None, Some(host)) => format!("{host}:{}", self.port.unwrap_or(3306)),
            (None, None) => "localhost".to_owned(),
        }
    }

    /// True if the options select a unix socket.
    pub fn is_local(&self) -> bool {
        self.socket.is_some() || self.host.as_deref() == Some("localhost")
    }
}

/// The addresses in the order of sysbench: the sockets, or else all hosts with the first port, all
/// hosts with the second port, and so on.
///
/// # Errors
/// An empty name in a list, or an invalid port.
pub fn endpoints(host: Option<&str>, port: Option<&str>, socket: Option<&str>) -> Result<Vec<Endpoint>> {
    if let Some(sockets) = socket {
        return names("mysql-socket", sockets)?
            .into_iter()
            .map(|socket| {
                Ok(Endpoint {
                    host: Some("localhost".to_owned()),
                    port: None,
                    socket: Some(socket),
                })
            })
            .collect();
    }
    let hosts: Vec<Option<String>> = match host {
        Some(hosts) => names("mysql-host", hosts)?.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let ports: Vec<Option<u16>> = match port {
        Some(ports) => names("mysql-port", ports)?
            .iter()
            .map(|port| match port.parse() {
                Ok(number) if number > 0 => Ok(Some(number)),
                _ => bail!("--mysql-port={ports}: `{port}` is not a port from 1 to 65535"),
            })
            .collect::<Result<_>>()?,
        None => vec![None],
    };
    let pairs = ports
        .iter()
        .flat_map(|port| hosts.iter().map(move |host| (host, port)));
    Ok(pairs
        .map(|(host, port)| Endpoint {
            host: host.clone(),
            port: *port,
            socket: None,
        })
        .collect())
}

fn names(option: &str, list: &str) -> Result<Vec<String>> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        bail!("--{option}={list}: the list contains an empty name");
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(host: Option<&str>, port: Option<&str>, socket: Option<&str>) -> Vec<String> {
        let all = endpoints(host, port, socket).unwrap();
        all.iter().map(Endpoint::describe).collect()
    }

    #[test]
    fn hosts_vary_faster_than_ports_and_sockets_override_both() {
        assert_eq!(
            described(Some("a,b"), Some("1,2"), None),
            ["a:1", "b:1", "a:2", "b:2"]
        );
        assert_eq!(described(Some("a"), None, Some("/x, /y")), ["/x", "/y"]);
    }

    #[test]
    fn an_invalid_list_is_refused() {
        let refusal = |host, port| endpoints(Some(host), Some(port), None).unwrap_err().to_string();
        assert!(refusal("a,,b", "1").contains("--mysql-host=a,,b"));
        assert!(refusal("a", "1,70000").contains("`70000`"));
    }
}
