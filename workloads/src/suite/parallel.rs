//! Distributes numbered tables or warehouses over several connections: number i to thread (i − 1)
//! mod threads, as in sysbench.

use std::thread;

use anyhow::Result;

use crate::driver::Connection;
use crate::workload::Setup;

/// Calls `work` for 1..=count on the threads of `setup`. A thread ends at its first error.
///
/// # Errors
/// The first error of a connection or of `work`.
pub fn for_each(
    setup: &Setup<'_>,
    count: usize,
    work: impl Fn(&mut dyn Connection, usize) -> Result<()> + Sync,
) -> Result<()> {
    let threads = setup.threads.clamp(1, count.max(1));
    let work = &work;
    thread::scope(|scope| {
        let body = move |first: usize| -> Result<()> {
            let mut connection = setup.driver.connect()?;
            (first..=count)
                .step_by(threads)
                .try_for_each(|number| work(connection.as_mut(), number))
        };
        let handles: Vec<_> = (1..=threads)
            .map(|first| scope.spawn(move || body(first)))
            .collect();
        // Joins all threads before it returns the first error.
        let results: Vec<_> = handles
            .into_iter()
            .map(|handle| {
                handle
                    .join()
                    .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread panicked")))
            })
            .collect();
        results.into_iter().collect()
    })
}
