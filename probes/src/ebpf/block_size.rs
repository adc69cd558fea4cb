//! Reports block I/O sizes by device and operation, from the programs that measure latency.

use std::io;
use std::rc::Rc;

use super::Shared;
use super::block::Names;
use super::block::Requests;
use super::block::cells;
use super::block::slots;
use super::map::Histograms;
use super::map::unmapped;
use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_block_size",
    "block I/O sizes by device and operation",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("device"), text("operation")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
const SOURCE: &str = "__data_len of struct request at block_rq_issue, counted at block_rq_complete";
static COLUMNS: &[Column] = columns! {
    counter(Byte) "sum_bytes", "bytes of all requests", SOURCE;
    buckets(Byte) "buckets", "requests by size; a flush has none", SOURCE;
};

#[derive(Debug)]
struct BlockSize {
    requests: Rc<Requests>,
    names: Names,
    /// Shows which slots have requests: their sizes can all be 0.
    time: Histograms,
    sizes: Histograms,
}

fn open(host: &Host, _: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    let requests = Requests::get(host, shared)?;
    let mapped = |requests: &Requests| -> io::Result<_> {
        let maps = &requests.programs.maps;
        let (slots, sets) = (requests.slots(), requests.sets);
        let time = Histograms::new(&maps.device_time, slots, sets)?;
        Ok((time, Histograms::new(&maps.sizes, slots, sets)?))
    };
    let (time, sizes) = mapped(&requests).map_err(|error| unmapped(&error))?;
    Ok(Box::new(BlockSize {
        requests,
        names: Names::new(host),
        time,
        sizes,
    }))
}

impl Probe for BlockSize {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        for slot in slots(&self.requests, self.names.updated(&self.requests)) {
            let is_used = self.time.sum(slot.index) > 0;
            if is_used || slot.expected {
                rows.row(&[slot.device.as_bytes(), slot.operation.as_bytes()]);
                cells(rows, &mut self.sizes, slot.index, is_used);
            }
        }
        Ok(())
    }
}
