/* Defines the histograms, call counters, per-task values and process roles that the programs of
 * Loadprint share.
 *
 * The Rust side of structs and enums is generated from the type information (BTF) of the compiled
 * object. The build script defines HISTOGRAM_BUCKETS and HISTOGRAM_GROUPING. */
#pragma once

#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* Adds an enum to the type information: the compiler leaves out enums that no variable has. */
#define SHARED_ENUM(name) const volatile enum name shared_##name

/* One histogram of one CPU, in whole cache lines. Its values never decrease. */
struct histogram {
	__u64 sum;
	__u64 buckets[HISTOGRAM_BUCKETS];
	__u64 unused[7];
};

/* A map of `count` elements. */
#define MAP(name, kind, key_type, element, count)                                                                      \
	struct {                                                                                                       \
		__uint(type, kind);                                                                                    \
		__uint(max_entries, count);                                                                            \
		__type(key, key_type);                                                                                 \
		__type(value, element);                                                                                \
	} name SEC(".maps")

/* An array of `count` elements that user space maps into its memory. */
#define MAPPED_ARRAY(name, element, count)                                                                             \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                                      \
		__uint(map_flags, BPF_F_MMAPABLE);                                                                     \
		__uint(max_entries, count);                                                                            \
		__type(key, __u32);                                                                                    \
		__type(value, element);                                                                                \
	} name SEC(".maps")

/* A mapped array whose size depends on the host: user space sets the number of elements before it
 * loads the object. */
#define MAPPED_ARRAY_SIZED_AT_LOAD(name, element) MAPPED_ARRAY(name, element, 1)

/* Capacity of the map by thread ID; a new entry replaces the least recently used one. */
#define MAX_TASKS 32768

/* Stores one value for each task: `name##_of(task, create)` returns a pointer to it, or 0. A new
 * value is all zeros.
 *
 * The kernel frees task storage with the task. Where it does not work (task_storage.bpf.c), as on
 * Linux 5.10, user space clears `use_task_storage`, and the values are in a hash map by thread ID.
 * The kernel reuses thread IDs, so an entry also has the start time of its task. User space creates
 * only the map that is used. */
#define TASK_STORAGE(name, element)                                                                                    \
	const volatile __u32 use_task_storage = 1;                                                                     \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE);                                                               \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                                                  \
		__type(key, int);                                                                                      \
		__type(value, element);                                                                                \
	} name SEC(".maps");                                                                                           \
	struct name##_entry {                                                                                          \
		__u64 started;                                                                                         \
		element value;                                                                                         \
	};                                                                                                             \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_LRU_HASH);                                                                   \
		__uint(max_entries, MAX_TASKS);                                                                        \
		__type(key, __u32);                                                                                    \
		__type(value, struct name##_entry);                                                                    \
	} name##_by_tid SEC(".maps");                                                                                  \
	static __noinline element *name##_by_tid_of(struct task_struct *task, bool create)                             \
	{                                                                                                              \
		struct name##_entry initial = {.started = BPF_CORE_READ(task, start_time)}, *entry;                    \
		__u32 tid = BPF_CORE_READ(task, pid);                                                                  \
                                                                                                                       \
		entry = bpf_map_lookup_elem(&name##_by_tid, &tid);                                                     \
		if (entry && entry->started == initial.started)                                                        \
			return &entry->value;                                                                          \
		if (!create || bpf_map_update_elem(&name##_by_tid, &tid, &initial, BPF_ANY))                           \
			return 0;                                                                                      \
		entry = bpf_map_lookup_elem(&name##_by_tid, &tid);                                                     \
		return entry ? &entry->value : 0;                                                                      \
	}                                                                                                              \
	static __always_inline element *name##_of(struct task_struct *task, bool create)                               \
	{                                                                                                              \
		if (use_task_storage)                                                                                  \
			return bpf_task_storage_get(&name, task, 0, create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);      \
		return name##_by_tid_of(task, create);                                                                 \
	}                                                                                                              \
	/* The running task. Without task storage it has no BTF type, so its fields are read with CURRENT_FIELD. */    \
	static __always_inline struct task_struct *current_task(void)                                                  \
	{                                                                                                              \
		return use_task_storage ? bpf_get_current_task_btf() : (struct task_struct *)bpf_get_current_task();   \
	}

#define CURRENT_FIELD(task, field) (use_task_storage ? (task)->field : BPF_CORE_READ(task, field))

/* Counts the calls of a program by CPU: the kernel reports only the sum over all CPUs. User space
 * finds the map by its name and sets the number of CPUs. A program that is preempted between
 * reading and writing the counter can lose a call. */
struct cpu_calls {
	__u64 count;
	__u64 unused[7]; /* a cache line for each CPU */
};

#define CALL_COUNTER(program)                                                                                          \
	MAPPED_ARRAY_SIZED_AT_LOAD(calls_##program, struct cpu_calls);                                                 \
	static __always_inline void count_##program(void)                                                              \
	{                                                                                                              \
		__u32 cpu = bpf_get_smp_processor_id();                                                                \
		struct cpu_calls *calls = bpf_map_lookup_elem(&calls_##program, &cpu);                                 \
                                                                                                                       \
		if (calls)                                                                                             \
			calls->count++;                                                                                \
	}

/* A map of histograms: one element for each CPU and slot. */
#define HISTOGRAMS(name) MAPPED_ARRAY_SIZED_AT_LOAD(name, struct histogram)

/* If `value` has more than `bits` bits, shifts it right by as many and adds them to `log`: then the
 * difference is negative. A branch would depend on the value, and the processor mispredict it. */
#define LOG2_STEP(value, log, bits)                                                                                    \
	({                                                                                                             \
		__u64 more = ((1ULL << bits) - 1 - value) >> 63 << __builtin_ctz(bits);                                \
                                                                                                                       \
		value >>= more;                                                                                        \
		log += more;                                                                                           \
	})

/* floor(log2(value)) for 0 < value < 2^63. BPF has no instruction that counts leading zeros. */
static __always_inline __u64 log2_floor(__u64 value)
{
	__u64 log = 0;

	LOG2_STEP(value, log, 32);
	LOG2_STEP(value, log, 16);
	LOG2_STEP(value, log, 8);
	LOG2_STEP(value, log, 4);
	/* The logarithms of 0 to 15, two bits each. */
	return log + (0xffffaa50 >> (value * 2) & 3);
}

static __always_inline __u32 histogram_bucket(__u64 value)
{
	__u64 shift, index;

	if (value < 2 << HISTOGRAM_GROUPING)
		return value;
	shift = log2_floor(value) - HISTOGRAM_GROUPING;
	index = (shift << HISTOGRAM_GROUPING) + (value >> shift);
	return index < HISTOGRAM_BUCKETS ? index : HISTOGRAM_BUCKETS - 1;
}

/* Not inlined: its code is in the cache for the second histogram of a program. */
static __noinline void histogram_count(struct histogram *histogram, __u64 value)
{
	__u64 bucket = histogram_bucket(value);

	/* Keeps the comparison after the arithmetic, where the verifier uses it. */
	barrier_var(bucket);
	if (bucket >= HISTOGRAM_BUCKETS)
		return;
	histogram->sum += value;
	histogram->buckets[bucket]++;
}

/* Adds `value` to this CPU's element `slot` of a map with `slots` elements for each CPU. A program
 * that can preempt itself uses histogram_add_atomic. */
static __always_inline void histogram_add(void *map, __u32 slots, __u32 slot, __u64 value)
{
	__u32 index = bpf_get_smp_processor_id() * slots + slot;
	struct histogram *histogram = bpf_map_lookup_elem(map, &index);

	if (histogram)
		histogram_count(histogram, value);
}

/* Adds `value` to element `index`, which several CPUs or programs can update at the same time. */
static __always_inline void histogram_add_shared(void *map, __u32 index, __u64 value)
{
	struct histogram *histogram = bpf_map_lookup_elem(map, &index);
	__u64 bucket = histogram_bucket(value);

	/* Keeps the comparison after the arithmetic, where the verifier uses it. */
	barrier_var(bucket);
	if (!histogram || bucket >= HISTOGRAM_BUCKETS)
		return;
	__sync_fetch_and_add(&histogram->sum, value);
	__sync_fetch_and_add(&histogram->buckets[bucket], 1);
}

static __always_inline void histogram_add_atomic(void *map, __u32 slots, __u32 slot, __u64 value)
{
	histogram_add_shared(map, bpf_get_smp_processor_id() * slots + slot, value);
}

/* MAX_ROLES includes role 0, the processes without a role. */
enum role_limits { ROLE_PAGE = 4096, MAX_ROLES = 8 };

SHARED_ENUM(role_limits);

struct role_page {
	__u8 role[ROLE_PAGE];
};

/* The role of each process by its ID (tgid), in pages. Only user space writes it. */
#define ROLES()                                                                                                        \
	MAPPED_ARRAY_SIZED_AT_LOAD(roles, struct role_page);                                                           \
	static __always_inline __u32 role_of(__u32 tgid)                                                               \
	{                                                                                                              \
		__u32 page = tgid / ROLE_PAGE;                                                                         \
		struct role_page *entry = bpf_map_lookup_elem(&roles, &page);                                          \
                                                                                                                       \
		return entry ? entry->role[tgid % ROLE_PAGE] % MAX_ROLES : 0;                                          \
	}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
