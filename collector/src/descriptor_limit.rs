//! Raises the soft limit on open files: each watched thread needs two descriptors.

use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;

/// Raises the soft limit to the hard limit; warns where the kernel refuses.
pub fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        eprintln!(
            "loadprint-collect: warning: cannot raise the limit on open files, some threads may be missing: {error}"
        );
    }
}
