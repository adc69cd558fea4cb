//! Measures sampled exchanges between a load and a server: the time in the network, and the time in
//! which the server works and the client does not wait.
//!
//! With both ends on this host, all times are of one clock. With the server only, the time that it
//! works after its last send is the overlap, and there are no times of the client and the network. A
//! connection through a proxy has no two ends that the programs can recognise.

use super::LOAD;
use super::SERVER;
use super::Scheduler;
use crate::ebpf::prelude::*;
use crate::ebpf::skeletons::sched::types::exchange_totals;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_exchanges",
    "sampled exchanges of the load with the server: network, and work while the client does not wait",
    &SCHEMA,
    open,
)
.gated();

const HOOKS: &str = "sched_switch, sock_send_length";
static ENTITY: &[Text] = &[text("ends")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    counter(One) "exchanges", "requests with an answer", HOOKS;
    counter(Nanosecond) "waiting_ns",
        "time in which their clients waited; null with the server's end only", HOOKS, lower;
    counter(Nanosecond) "server_ns",
        "time from the arrival of the request until the server waited for the next one", HOOKS, lower;
    counter(Nanosecond) "network_ns",
        "the part of waiting_ns before the arrival, or after the server's last send had returned; null with \
         the server's end only", HOOKS, lower;
    counter(Nanosecond) "overlap_ns",
        "the part of server_ns in which the client did not wait, or after the last send had returned", HOOKS;
};

struct Exchanges {
    has_load: bool,
    scheduler: Rc<Scheduler>,
}

fn open(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    check_host(host)?;
    let roles = shared.roles(host, options)?;
    let has = |role: &str| roles.names().iter().any(|name| name == role);
    if !has(SERVER) {
        return Err(NotRunning::Off(
            "no process has the role server; name it with --process server=PID".to_owned(),
        ));
    }
    let has_load = has(LOAD);
    let scheduler = shared.scheduler(host, options)?;
    if !scheduler.follows_exchanges {
        return Err(NotRunning::Unavailable(
            "ebpf exchanges: this kernel has no tracepoint sock_send_length; it needs Linux 6.3 or newer"
                .to_owned(),
        ));
    }
    Ok(Box::new(Exchanges { has_load, scheduler }))
}

impl Probe for Exchanges {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.scheduler.refresh();
        let total = |offset| self.scheduler.exchanges.counter(0, offset).unwrap_or(0);
        let both = |offset| self.has_load.then(|| total(offset));
        let ends: &[u8] = if self.has_load { b"both" } else { b"server" };
        rows.row(&[ends]);
        rows.uint(total(offset_of!(exchange_totals, exchanges)));
        rows.uint_or_null(both(offset_of!(exchange_totals, waiting_ns)));
        rows.uint(total(offset_of!(exchange_totals, server_ns)));
        rows.uint_or_null(both(offset_of!(exchange_totals, network_ns)));
        rows.uint(total(offset_of!(exchange_totals, overlap_ns)));
        Ok(())
    }
}
