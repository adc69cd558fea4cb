//! Keeps passwords from servers that only claim to be the right one: without TLS a server may
//! request an authentication plugin that encrypts the password with a key of the server's choice
//! (`caching_sha2_password`, `sha256_password`), or that sends it as it is (`mysql_clear_password`).
//!
//! MYSQL_OPT_GET_SERVER_PUBLIC_KEY alone does not prevent this: `sha256_password` ignores it
//! (sql-common/client_authentication.cc), and any server can request that plugin. The plugins are
//! therefore called through functions of this module, which know the peer of the connection.

use std::ffi::CStr;
use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_uint;
use std::ffi::c_void;
use std::mem;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::ptr;
use std::sync::OnceLock;

use mysqlclient_sys as sys;

/// MYSQL_CLIENT_AUTHENTICATION_PLUGIN of mysql/client_plugin.h.
const AUTHENTICATION: c_int = 2;
/// MYSQL_CLIENT_AUTHENTICATION_PLUGIN_INTERFACE_VERSION, its major part.
const INTERFACE: c_uint = 2;
/// CR_ERROR of mysql/plugin_auth_common.h.
const CR_ERROR: c_int = 0;
/// CR_AUTH_PLUGIN_ERR of errmsg.h.
const CR_AUTH_PLUGIN_ERR: c_uint = 2061;

type Authenticate = unsafe extern "C" fn(*mut c_void, *mut sys::MYSQL) -> c_int;

/// `struct auth_plugin_t` of mysql/client_plugin.h, up to the member that is used.
#[repr(C)]
struct Plugin {
    header: sys::st_mysql_client_plugin,
    authenticate: Option<Authenticate>,
}

/// The library's functions.
static CACHING_SHA2: OnceLock<Authenticate> = OnceLock::new();
static SHA256: OnceLock<Authenticate> = OnceLock::new();
static CLEAR: OnceLock<Authenticate> = OnceLock::new();

/// Replaces the functions of the library's plugins. Call it once, before the first connection.
pub fn install() {
    let plugins: [(&CStr, &OnceLock<Authenticate>, Authenticate); 3] = [
        (c"caching_sha2_password", &CACHING_SHA2, caching_sha2),
        (c"sha256_password", &SHA256, sha256),
        (c"mysql_clear_password", &CLEAR, clear),
    ];
    // SAFETY: the library is initialised. A plugin without a description of this type and version
    // is left alone; that of the library is in writable memory, of which no other thread reads
    // before the first connection.
    unsafe {
        let mysql = sys::mysql_init(ptr::null_mut());
        for (name, library, guarded) in plugins {
            let plugin = sys::mysql_client_find_plugin(mysql, name.as_ptr(), AUTHENTICATION).cast::<Plugin>();
            if plugin.is_null() || (*plugin).header.interface_version >> 8 != INTERFACE {
                continue;
            }
            if let Some(authenticate) = (*plugin).authenticate
                && library.set(authenticate).is_ok()
            {
                (*plugin).authenticate = Some(guarded);
            }
        }
        sys::mysql_close(mysql);
    }
}

/// Without TLS it may request the server's key from a peer on this host only, unless the options
/// permit it. A key of MYSQL_SERVER_PUBLIC_KEY has precedence.
unsafe extern "C" fn caching_sha2(vio: *mut c_void, mysql: *mut sys::MYSQL) -> c_int {
    // SAFETY: the library calls its plugins with the handle of a connection.
    unsafe {
        let permitted = may_request_key(mysql) || is_on_this_host(mysql);
        sys::mysql_options(
            mysql,
            sys::mysql_option::MYSQL_OPT_GET_SERVER_PUBLIC_KEY,
            ptr::from_ref(&permitted).cast(),
        );
        call(&CACHING_SHA2, vio, mysql)
    }
}

/// It requests the server's key unless it can load that of MYSQL_SERVER_PUBLIC_KEY, which is not
/// known here.
unsafe extern "C" fn sha256(vio: *mut c_void, mysql: *mut sys::MYSQL) -> c_int {
    // SAFETY: as above.
    unsafe {
        if has_tls(mysql) || is_on_this_host(mysql) || may_request_key(mysql) {
            return call(&SHA256, vio, mysql);
        }
        refuse(mysql, c"the server requests sha256_password, which encrypts the password with a key of the server: authentication requires a secure connection")
    }
}

unsafe extern "C" fn clear(vio: *mut c_void, mysql: *mut sys::MYSQL) -> c_int {
    // SAFETY: as above.
    unsafe {
        if has_tls(mysql) || is_on_this_host(mysql) {
            return call(&CLEAR, vio, mysql);
        }
        refuse(mysql, c"the server requests mysql_clear_password, which sends the password as it is: authentication requires a secure connection")
    }
}

unsafe fn call(library: &OnceLock<Authenticate>, vio: *mut c_void, mysql: *mut sys::MYSQL) -> c_int {
    // SAFETY: the arguments are those of the library's call.
    library
        .get()
        .map_or(CR_ERROR, |authenticate| unsafe { authenticate(vio, mysql) })
}

unsafe fn may_request_key(mysql: *mut sys::MYSQL) -> bool {
    let mut permitted = false;
    // SAFETY: this option is a bool.
    unsafe {
        sys::mysql_get_option(
            mysql,
            sys::mysql_option::MYSQL_OPT_GET_SERVER_PUBLIC_KEY,
            ptr::from_mut(&mut permitted).cast(),
        );
    }
    permitted
}

unsafe fn has_tls(mysql: *mut sys::MYSQL) -> bool {
    // SAFETY: the handle is connected.
    unsafe { !sys::mysql_get_ssl_cipher(mysql).is_null() }
}

/// True for a unix socket and for a loopback address.
unsafe fn is_on_this_host(mysql: *mut sys::MYSQL) -> bool {
    // SAFETY: an address of zeros is valid; the kernel writes at most `length` bytes. The family
    // selects the type of the address.
    unsafe {
        let mut address: libc::sockaddr_storage = mem::zeroed();
        let mut length = size_of_val(&address) as libc::socklen_t;
        let pointer = ptr::from_mut(&mut address);
        if libc::getpeername((*mysql).net.fd, pointer.cast(), &raw mut length) != 0 {
            return false;
        }
        match c_int::from(address.ss_family) {
            libc::AF_UNIX => true,
            libc::AF_INET => {
                let address = (*pointer.cast::<libc::sockaddr_in>()).sin_addr.s_addr;
                Ipv4Addr::from(u32::from_be(address)).is_loopback()
            }
            libc::AF_INET6 => {
                let address = Ipv6Addr::from((*pointer.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr);
                address.to_canonical().is_loopback()
            }
            _ => false,
        }
    }
}

/// Sets the error of the connection, as plugins do.
unsafe fn refuse(mysql: *mut sys::MYSQL, message: &CStr) -> c_int {
    // SAFETY: the handle is valid; both texts are cut to their arrays, which keep a zero at the end.
    unsafe {
        let net = &mut (*mysql).net;
        net.last_errno = CR_AUTH_PLUGIN_ERR;
        copy(&mut net.sqlstate, c"HY000");
        copy(&mut net.last_error, message);
    }
    CR_ERROR
}

fn copy(to: &mut [c_char], from: &CStr) {
    to.fill(0);
    let room = to.len() - 1;
    for (to, from) in to[..room].iter_mut().zip(from.to_bytes()) {
        // signed on x86-64, unsigned on AArch64
        *to = c_char::from_ne_bytes([*from]);
    }
}
