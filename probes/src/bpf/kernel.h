/* The kernel types that the programs touch, cut down to the fields they touch.
 *
 * Offsets are those of the running kernel: preserve_access_index makes every access a CO-RE relocation, so the order
 * and size of what stands here mean nothing. A field that some kernels lack is asked for with bpf_core_field_exists. */
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
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1, BPF_F_NO_PREALLOC = 1 };
enum { BPF_F_MMAPABLE = 1 << 10 };

/* Registers under the kernel's names, which is how bpf_tracing.h finds arguments. */
#define __VMLINUX_H__

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	unsigned long flags;
	__u32 status; /* not on every architecture */
};

struct task_struct {
	struct thread_info thread_info;
	int pid;
	int tgid;
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

#pragma clang attribute pop
