//! The MySQL server in the root directory of `tests/with-server`, for a test's own data directory.

/// The program and its first arguments. It ends with the thread that starts it.
pub fn mysql_program(root: &str) -> Vec<String> {
    // Run by the loader of its root directory instead of a chroot, so that paths are those of
    // the host.
    let words = format!(
        "setpriv --pdeathsig KILL {root}/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 \
         --library-path {root}/usr/lib/x86_64-linux-gnu:{root}/usr/lib/mysql/private {root}/usr/sbin/mysqld \
         --no-defaults --basedir={root}/usr --mysqlx=OFF --secure-file-priv=NULL --user=root --skip-log-bin \
         --innodb-buffer-pool-size=32M"
    );
    words.split(' ').map(str::to_owned).collect()
}
