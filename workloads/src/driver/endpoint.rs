//! Parses the lists of hosts, ports and sockets into server addresses.

use anyhow::Result;
use anyhow::bail;

/// One address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// `localhost` means the unix socket.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path of the unix socket; `None` leaves it to the library's default.
    pub socket: Option<String>,
}

impl Endpoint {
    /// The address as text, for messages and results.
    pub fn describe(&self) -> String {
        match &self.socket {
            Some(socket) => socket.clone(),
            None if self.is_local() => "localhost (unix socket)".to_owned(),
            None => format!("{}:{}", self.host, self.port),
        }
    }

    /// True for a unix socket.
    pub fn is_local(&self) -> bool {
        self.host == "localhost"
    }
}

/// The addresses in the order of sysbench: the sockets, or else all hosts with the first port, all
/// hosts with the second port, and so on.
///
/// # Errors
/// An empty name in a list, or an invalid port.
pub fn endpoints(hosts: &str, ports: &str, sockets: Option<&str>) -> Result<Vec<Endpoint>> {
    let port = |port: &String| match port.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => bail!("--mysql-port={ports}: `{port}` is not a port from 1 to 65535"),
    };
    let ports = names("mysql-port", ports)?
        .iter()
        .map(port)
        .collect::<Result<Vec<u16>>>()?;
    if let Some(sockets) = sockets {
        let sockets = names("mysql-socket", sockets)?.into_iter();
        return Ok(sockets
            .map(|socket| Endpoint {
                host: "localhost".to_owned(),
                port: ports[0],
                socket: Some(socket),
            })
            .collect());
    }
    let hosts = names("mysql-host", hosts)?;
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

    fn described(host: &str, port: &str, socket: Option<&str>) -> Vec<String> {
        let all = endpoints(host, port, socket).unwrap();
        all.iter().map(Endpoint::describe).collect()
    }

    #[test]
    fn hosts_vary_faster_than_ports_and_sockets_override_both() {
        assert_eq!(described("a,b", "1,2", None), ["a:1", "b:1", "a:2", "b:2"]);
        assert_eq!(described("a", "1", Some("/x, /y")), ["/x", "/y"]);
    }

    #[test]
    fn an_invalid_list_is_refused() {
        let refusal = |host, port| endpoints(host, port, None).unwrap_err().to_string();
        assert!(refusal("a,,b", "1").contains("--mysql-host=a,,b"));
        assert!(refusal("a", "1,70000").contains("`70000`"));
    }
}
