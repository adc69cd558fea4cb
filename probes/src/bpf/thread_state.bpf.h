/* Finds what a thread waits for: its system call, the socket or file of its descriptor, and the name
 * of this file. */
#pragma once

#include "loadprint.bpf.h"

enum direction { READ, WRITE, FLUSH, DIRECTIONS };
enum file_kind { TABLESPACE, REDO_LOG, BINARY_LOG, DOUBLEWRITE, UNDO, TEMPORARY, OTHER_FILE, FILE_KINDS };

/* The states of a thread. STOPPED_WAIT: by a signal, a tracer or the freezer. MEMORY_WAIT: for the
 * reclaim of memory, for the limit memory.high of its control group, or in a page fault; FAULT_WAIT: in
 * one that reads from a device. Those from FILE_WAIT are direction * FILE_KINDS + file_kind. reason_of
 * depends on the order. */
enum state {
	ON_CPU,
	STOLEN,
	RUN_QUEUE,
	THROTTLED,
	PAUSE_QUEUE, /* the run queue after a pause: LOCK_WAIT, NO_CONNECTION or SLEEP_WAIT */
	CLIENT_WAIT,
	SEND_WAIT,
	NETWORK_WAIT,
	LOCK_WAIT,
	NO_CONNECTION,
	SLEEP_WAIT,
	OTHER_WAIT,
	STOPPED_WAIT,
	MEMORY_WAIT,
	FAULT_WAIT,
	FILE_WAIT,
	STATES = FILE_WAIT + DIRECTIONS * FILE_KINDS,
};

/* Values that calls have in place of a state: the arguments of the call decide. */
enum decided_by {
	BY_CONNECTION = STATES, /* a futex: of a thread with a connection, or without */
	BY_POLL,
	BY_SOCKET,  /* a call that receives */
	BY_RESTART, /* restart_syscall, which a signal or a stop causes */
	BY_READ,    /* the file is a socket or another file */
	BY_WRITE,
	BY_FILE, /* + direction: it is a regular file */
};

SHARED_ENUM(direction);
SHARED_ENUM(file_kind);
SHARED_ENUM(state);
SHARED_ENUM(decided_by);

/* The connection of a thread: the socket of the client for whose data it waits. The kernel reuses
 * descriptors and addresses of files soon, but not the inode numbers of sockets. */
struct connection {
	__u64 socket; /* its inode number, or ENDED; 0: the thread never had one */
	__u32 descriptor;
	__u32 poll; /* the argument of the last poll for its data, shortened; 0: not known */
};

/* The connection of a thread that may wait for another one. */
#define ENDED 1

/* The state of each system call by its number on this architecture. */
#define CALLS 512
const volatile __u8 state_of_call[CALLS];

/* The number that the kernel writes where a task enters it without a system call, as in a page fault. */
#define NO_CALL 0xffffffff

/* The process of the recorder. */
const volatile __s32 recorder;

struct call {
	__u64 number;
	__u64 first;
	__u64 second;
};

/* Reads the registers with which the task entered the system call; they are unchanged until it
 * returns. */
static __always_inline struct call call_of(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___aarch64 *arm64 = (void *)regs;
	struct call call = {.number = CALLS};

	if (bpf_core_field_exists(x86->orig_ax))
		call = (struct call){x86->orig_ax, x86->di, x86->si};
	else if (bpf_core_field_exists(arm64->syscallno))
		call = (struct call){(__u32)arm64->syscallno, arm64->orig_x0, arm64->regs[1]};
	return call;
}

static __always_inline struct file *file_of(struct task_struct *task, __u32 descriptor)
{
	struct fdtable *table = task->files->fdt;
	struct file **files = table->fd, *file = 0;

	if (descriptor < table->max_fds)
		bpf_probe_read_kernel(&file, sizeof(file), files + descriptor);
	return file;
}

/* Whether the file is the socket of a client. The recorder's connection through a unix socket is not
 * part of the load. */
static __always_inline bool is_client(struct file *file)
{
	struct socket *socket;
	struct sock *sock;

	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return false;
	socket = BPF_CORE_READ(file, private_data);
	sock = BPF_CORE_READ(socket, sk);
	return BPF_CORE_READ(socket, type) == SOCK_STREAM &&
	       BPF_CORE_READ(sock, __sk_common.skc_state) == TCP_ESTABLISHED &&
	       BPF_CORE_READ(sock, sk_peer_pid, numbers[0].nr) != recorder;
}

static __always_inline __u64 number_of(struct file *file)
{
	return BPF_CORE_READ(file, f_inode, i_ino);
}

/* Whether the thread's connection is open. Its descriptor may be the connection of another thread by
 * now: only a wait for the client's data shows that a thread has a new one. */
static __always_inline bool has_connection(struct task_struct *task, struct connection *connection)
{
	if (connection->socket != ENDED && number_of(file_of(task, connection->descriptor)) == connection->socket)
		return true;
	connection->socket = ENDED;
	connection->poll = 0;
	return false;
}

/* Whether the descriptor is the thread's connection. The socket of a client becomes it if the thread
 * has no other. A thread that waits for data of the same descriptor again needs no further look. */
static __noinline bool is_connection(struct task_struct *task, struct connection *connection, __u32 descriptor)
{
	struct file *file;

	if (connection->socket > ENDED && descriptor == connection->descriptor)
		return true;
	file = file_of(task, descriptor);
	if (!is_client(file)) {
		/* It serves the recorder now. */
		if (connection->socket == ENDED)
			connection->socket = 0;
		return false;
	}
	if (connection->socket && has_connection(task, connection))
		return false;
	connection->socket = number_of(file);
	connection->descriptor = descriptor;
	return true;
}

/* The first bytes of a text as a number, in the byte order of both architectures. */
#define WORD_OF(text)                                                                                                  \
	({                                                                                                             \
		__u64 word = 0;                                                                                        \
		__builtin_memcpy(&word, text, sizeof(text) - 1);                                                       \
		word;                                                                                                  \
	})
#define STARTS_WITH(word, text) (((word ^ WORD_OF(text)) << (64 - 8 * (sizeof(text) - 1))) == 0)
#define ENDS_WITH(word, text)   (word >> (64 - 8 * (sizeof(text) - 1)) == WORD_OF(text))

/* A point and six digits. */
static __always_inline bool ends_with_number(__u64 end)
{
	__u64 digits = end & 0xffffffffffff0000, high = 0xf0f0f0f0f0f00000;

	return (end & 0xff00) == '.' << 8 && (digits & high) == 0x3030303030300000 &&
	       ((digits + 0x0606060606060000) & high) == 0x3030303030300000;
}

/* The kernel names a file of O_TMPFILE by its inode number, as #1234. */
static __always_inline bool is_nameless(__u64 start)
{
	return (start & 0xff) == '#' && (__u8)((start >> 8) - '0') < 10;
}

/* What a file contains, by the names that MySQL and MariaDB use. */
static __always_inline __u32 kind_of_name(struct dentry *dentry)
{
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	__u32 length = BPF_CORE_READ(dentry, d_name.len);
	__u64 start = 0, end = 0;

	bpf_probe_read_kernel(&start, sizeof(start), name);
	if (length >= sizeof(end))
		bpf_probe_read_kernel(&end, sizeof(end), name + length - sizeof(end));
	else
		end = start << (64 - 8 * length);
	if (STARTS_WITH(start, "#ib_redo") || STARTS_WITH(start, "ib_logfi") || STARTS_WITH(start, "ib_redo"))
		return REDO_LOG;
	if (STARTS_WITH(start, "#sql") || STARTS_WITH(start, "ibtmp") || ENDS_WITH(end, ".ibt") || is_nameless(start))
		return TEMPORARY;
	if (STARTS_WITH(start, "undo_") || STARTS_WITH(start, "undo0"))
		return UNDO;
	if (ENDS_WITH(end, ".dblwr"))
		return DOUBLEWRITE;
	if (ENDS_WITH(end, ".ibd") || STARTS_WITH(start, "ibdata") || ENDS_WITH(end, ".MYI") || ENDS_WITH(end, ".MYD"))
		return TABLESPACE;
	return ends_with_number(end) ? BINARY_LOG : OTHER_FILE;
}

/* The kinds of recently used files: the address of the directory entry, and the kind in its free
 * bits. Reading a name costs several cache misses. Temporary files are not stored: the kernel soon
 * gives their addresses and descriptors to other files. */
enum { KNOWN_FILES = 256, KIND_MASK = 7 };

MAP(known_files, BPF_MAP_TYPE_ARRAY, __u32, __u64, KNOWN_FILES);

static __always_inline __u32 kind_of(struct file *file, __u32 descriptor)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	__u32 index = descriptor % KNOWN_FILES;
	__u64 *known = bpf_map_lookup_elem(&known_files, &index);
	__u32 kind;

	if (!known)
		return OTHER_FILE;
	if ((*known & ~(__u64)KIND_MASK) == (__u64)dentry)
		return *known & KIND_MASK;
	kind = kind_of_name(dentry);
	if (kind != TEMPORARY)
		*known = (__u64)dentry | kind;
	return kind;
}

/* Reading the memory of a process takes longer than the rest of the program. A thread waits for its
 * next command at one place of its stack, so only one in 16 such polls is read, at random. */
enum { POLLS_READ = 16 };

static __always_inline __u32 state_of_poll(struct task_struct *task, struct connection *connection, struct call *call)
{
	__u32 address = call->first;
	struct pollfd poll;

	if (call->second != 1)
		return NETWORK_WAIT;
	if (address == connection->poll && task->se.sum_exec_runtime % POLLS_READ)
		return CLIENT_WAIT;
	connection->poll = 0;
	if (bpf_probe_read_user(&poll, sizeof(poll), (void *)call->first))
		return NETWORK_WAIT;
	if (!(poll.events & POLLIN))
		return poll.events & POLLOUT ? SEND_WAIT : NETWORK_WAIT;
	if (!is_connection(task, connection, poll.fd))
		return NETWORK_WAIT;
	connection->poll = address;
	return CLIENT_WAIT;
}

static __noinline __u32 state_of_call_with_file(struct task_struct *task, struct connection *connection, __u32 by,
                                                __u32 descriptor)
{
	struct file *file = file_of(task, descriptor);
	__u32 direction = by - BY_FILE, type;

	if (by < BY_FILE) {
		type = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
		if (type == S_IFSOCK && by == BY_WRITE)
			return SEND_WAIT;
		if (type == S_IFSOCK)
			return is_connection(task, connection, descriptor) ? CLIENT_WAIT : NETWORK_WAIT;
		if (type != S_IFREG && type != S_IFBLK)
			return OTHER_WAIT;
		direction = by == BY_WRITE ? WRITE : READ;
	}
	return FILE_WAIT + direction * FILE_KINDS + kind_of(file, descriptor);
}

/* What restart_syscall resumes, by the arguments of the call that was interrupted: the number of
 * descriptors of poll, the operation of a futex, or no flags of clock_nanosleep. */
static __always_inline __u32 state_of_restarted(struct call *call)
{
	if (call->second == 1)
		return BY_POLL;
	if (call->second & FUTEX_PRIVATE_FLAG)
		return BY_CONNECTION;
	return call->second ? NETWORK_WAIT : SLEEP_WAIT;
}

/* A server keeps threads whose connection has ended for the next one. */
static __always_inline __u32 unless_ended(struct task_struct *task, struct connection *connection, __u32 state)
{
	return connection->socket && !has_connection(task, connection) ? NO_CONNECTION : state;
}

static __always_inline __u32 state_of_current_call(struct task_struct *task, struct connection *connection)
{
	struct call call = {.number = CALLS};
	__u32 state = OTHER_WAIT;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		call = call_of(task);
	if (call.number < CALLS)
		state = state_of_call[call.number];
	else if ((__u32)call.number == NO_CALL)
		state = MEMORY_WAIT;
	if (state == BY_RESTART)
		state = state_of_restarted(&call);
	if (state < STATES)
		return state;
	if (state == BY_CONNECTION)
		return unless_ended(task, connection, LOCK_WAIT);
	if (state == BY_POLL)
		return state_of_poll(task, connection, &call);
	if (state == BY_SOCKET)
		return is_connection(task, connection, call.first) ? CLIENT_WAIT : NETWORK_WAIT;
	return state_of_call_with_file(task, connection, state, call.first);
}

#define HAS_BIT(task, field) (bpf_core_field_exists((task)->field) && BPF_CORE_READ_BITFIELD(task, field))

/* Why the current task blocks. Kernel threads have no system call. A task that waits for a device
 * (in_iowait) reads. The kernel marks waits for memory (in_memstall), also those for a device: a read
 * of a page that was evicted before. */
static __noinline __u32 state_of_blocked(struct task_struct *task, struct connection *connection, __u32 task_state)
{
	__u32 state = OTHER_WAIT, flags = task->flags;
	bool is_device = BPF_CORE_READ_BITFIELD(task, in_iowait);

	if (!(flags & (PF_KTHREAD | PF_IO_WORKER))) {
		if (task_state & (__TASK_STOPPED | __TASK_TRACED | TASK_FROZEN) || flags & PF_FROZEN ||
		    HAS_BIT(task, frozen))
			return unless_ended(task, connection, STOPPED_WAIT);
		if (flags & PF_MEMALLOC || (!is_device && HAS_BIT(task, in_memstall)))
			return MEMORY_WAIT;
		state = state_of_current_call(task, connection);
	}
	if (state >= FILE_WAIT || !is_device)
		return state;
	return state == MEMORY_WAIT ? FAULT_WAIT : FILE_WAIT + READ * FILE_KINDS + OTHER_FILE;
}
