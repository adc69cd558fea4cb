/* Declares the kernel types that the programs use, with only the fields that they use.
 *
 * preserve_access_index makes every access a CO-RE relocation: libbpf inserts the offsets of the
 * running kernel, so order and size of these fields do not matter. Programs test for a field that
 * some kernels lack with bpf_core_field_exists. */
#pragma once

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false, true };

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1, BPF_F_NO_PREALLOC = 1 };
enum { BPF_F_MMAPABLE = 1 << 10, BPF_F_USER_STACK = 1 << 8, BPF_RB_NO_WAKEUP = 1 };
enum bpf_func_id { BPF_FUNC_task_pt_regs = 175 };

/* include/linux/sched.h. PF_IO_WORKER, PF_KTHREAD: threads that never run in user space. PF_MEMALLOC:
 * the thread reclaims memory. PF_FROZEN: before 6.1 (f5d39b020809), which has TASK_FROZEN. */
enum { PF_EXITING = 0x4, PF_IO_WORKER = 0x10, PF_MEMALLOC = 0x800, PF_FROZEN = 0x10000, PF_KTHREAD = 0x200000 };
enum { __TASK_STOPPED = 0x4, __TASK_TRACED = 0x8, TASK_FROZEN = 0x8000 };

/* include/uapi/linux/stat.h */
enum { S_IFMT = 0170000, S_IFSOCK = 0140000, S_IFREG = 0100000, S_IFBLK = 0060000 };

/* include/linux/net.h, include/net/tcp_states.h, include/linux/socket.h */
enum { SOCK_STREAM = 1, TCP_ESTABLISHED = 1 };
enum { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10 };

/* include/uapi/linux/futex.h */
enum { FUTEX_PRIVATE_FLAG = 128 };

/* include/uapi/asm-generic/poll.h */
enum { POLLIN = 1, POLLOUT = 4 };

struct pollfd {
	__s32 fd;
	__s16 events;
	__s16 revents;
};

/* Makes bpf_tracing.h use the kernel's names of registers. */
#define __VMLINUX_H__

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	unsigned long flags;
	__u32 status; /* not on every architecture */
};

/* kernel/sched/sched.h */
struct rq {
	__u64 clock;
};

struct cfs_rq {
	struct rq *rq;
	__u64 throttled_clock_self_time; /* since 6.6 (677ea015f231) */
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
	__u64 sum_exec_runtime;
};

struct sched_info {
	unsigned long pcount;
	__u64 run_delay;
	__u64 last_queued;
};

struct inode {
	__u16 i_mode;
	unsigned long i_ino;
};

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	void *private_data;
	struct path f_path;
};

struct fdtable {
	__u32 max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct mm_struct;

struct task_struct {
	struct thread_info thread_info;
	int pid;
	int tgid;
	__u32 __state;
	__u32 flags;
	__u32 in_iowait : 1;
	__u32 frozen : 1;      /* by a control group of version 2 */
	__u32 in_memstall : 1; /* with CONFIG_PSI */
	struct sched_entity se;
	__u64 utime;
	__u64 stime;
	__u64 start_time;
	struct sched_info sched_info;
	struct files_struct *files;
	struct mm_struct *mm;
};

/* Before Linux 5.14. */
struct task_struct___state {
	long state;
};

/* Since 5.19 (64eaf50731ac), and before it. */
struct cfs_rq___pelt {
	__u64 throttled_clock_pelt_time;
};
struct cfs_rq___task {
	__u64 throttled_clock_task_time;
};

struct pt_regs___x86 {
	unsigned long orig_ax;
	unsigned long di;
	unsigned long si;
};

/* libbpf has a pt_regs___arm64 without the number. */
struct pt_regs___aarch64 {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
};

#if defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
};
#else
struct pt_regs {
	unsigned long di;
	unsigned long si;
	unsigned long dx;
};
#endif

/* include/uapi/linux/bpf_perf_event.h */
struct bpf_perf_event_data {
	__u64 sample_period;
};

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	__be16 skc_dport;
	__u16 skc_num;
};

struct upid {
	int nr;
};

struct pid {
	struct upid numbers[1];
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	struct pid *sk_peer_pid;
};

struct socket {
	__s16 type;
	struct sock *sk;
};

struct unix_sock {
	struct sock *peer;
};

struct request_sock {
	struct sock_common __req_common;
};

struct inet_sock {
	__be16 inet_sport;
};

struct tcp_sock {
	__u32 srtt_us;
};

struct tcp_skb_cb {
	__u16 tcp_gso_segs;
};

struct sk_buff {
	char cb[48];
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk; /* since 5.17 (d152c682f03c); before, in each request */
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
};

struct request___before_5_17 {
	struct gendisk *rq_disk;
};

#pragma clang attribute pop

/* include/linux/blk_types.h; the value differs between kernels. */
enum req_flag_bits { __REQ_FUA = 17 };

/* The arguments of the tracepoint since 5.11 (a54895fa057c); before, a queue came before the
 * request. */
typedef void (*btf_trace_block_rq_issue)(void *, struct request *);

/* Since 6.17 (ad892e912b84), also called for segments that were not sent; before, without `err`. */
typedef void (*btf_trace_tcp_retransmit_skb)(void *, const struct sock *, const struct sk_buff *, int err);
