/* What every program of Loadprint has in common: histograms, counters and the roles of processes. */
#pragma once

#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* As in collector/recording/src/histogram.rs, which says what the buckets mean. */
#define HISTOGRAM_BUCKETS  280
#define HISTOGRAM_GROUPING 3

/* One histogram of one CPU: whole cache lines, only ever added to. */
struct histogram {
	__u64 sum;
	__u64 buckets[HISTOGRAM_BUCKETS];
	__u64 unused[7];
};

/* An array of `count` elements that user space maps and reads as memory. */
#define MAPPED_OF(name, element, count)                                                                                \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                                      \
		__uint(map_flags, BPF_F_MMAPABLE);                                                                     \
		__uint(max_entries, count);                                                                            \
		__type(key, __u32);                                                                                    \
		__type(value, element);                                                                                \
	} name SEC(".maps")

/* The same, whose size depends on the host: user space sets the number of elements before it loads. */
#define MAPPED(name, element) MAPPED_OF(name, element, 1)

/* Tasks that the map by number has room for: the oldest entry makes room for a new one. */
#define MAX_TASKS 32768

/* What is kept of each task: `name##_of(task, create)` gives its element, all zeros at first, or 0.
 *
 * The kernel frees task storage with the task. Linux 5.10 does not offer it to these types of programs: there, user
 * space clears `task_storage`, and a hash map by thread number is used instead. A later task may get the same number,
 * so the start time of the task is compared. User space creates only the map that is used. */
#define OF_TASKS(name, element)                                                                                        \
	const volatile __u32 task_storage = 1;                                                                         \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE);                                                               \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                                                  \
		__type(key, int);                                                                                      \
		__type(value, element);                                                                                \
	} name SEC(".maps");                                                                                           \
	struct name##_entry {                                                                                          \
		__u64 started;                                                                                         \
		element kept;                                                                                          \
	};                                                                                                             \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_LRU_HASH);                                                                   \
		__uint(max_entries, MAX_TASKS);                                                                        \
		__type(key, __u32);                                                                                    \
		__type(value, struct name##_entry);                                                                    \
	} name##_by_number SEC(".maps");                                                                               \
	static __always_inline element *name##_of(struct task_struct *task, bool create)                               \
	{                                                                                                              \
		struct name##_entry none = {}, *entry;                                                                 \
		__u32 number;                                                                                          \
                                                                                                                       \
		if (task_storage)                                                                                      \
			return bpf_task_storage_get(&name, task, 0, create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);      \
		number = BPF_CORE_READ(task, pid);                                                                     \
		none.started = BPF_CORE_READ(task, start_time);                                                        \
		entry = bpf_map_lookup_elem(&name##_by_number, &number);                                               \
		if (entry && entry->started == none.started)                                                           \
			return &entry->kept;                                                                           \
		if (!create || bpf_map_update_elem(&name##_by_number, &number, &none, BPF_ANY))                        \
			return 0;                                                                                      \
		entry = bpf_map_lookup_elem(&name##_by_number, &number);                                               \
		return entry ? &entry->kept : 0;                                                                       \
	}                                                                                                              \
	/* The task that runs; its fields are read with CURRENT_FIELD, for without task storage it has no type. */     \
	static __always_inline struct task_struct *current_task(void)                                                  \
	{                                                                                                              \
		return task_storage ? bpf_get_current_task_btf() : (struct task_struct *)bpf_get_current_task();       \
	}

#define CURRENT_FIELD(task, field) (task_storage ? (task)->field : BPF_CORE_READ(task, field))

/* How often a program was called, by CPU: the kernel reports a program's time and calls only as sums over all CPUs.
 * User space finds the map by its name and sets the number of CPUs. A program that is preempted here can lose a call.
 */
struct cpu_calls {
	__u64 count;
	__u64 unused[7]; /* a cache line for each CPU */
};

#define COUNTED(program)                                                                                               \
	MAPPED(calls_##program, struct cpu_calls);                                                                     \
	static __always_inline void count_##program(void)                                                              \
	{                                                                                                              \
		__u32 cpu = bpf_get_smp_processor_id();                                                                \
		struct cpu_calls *calls = bpf_map_lookup_elem(&calls_##program, &cpu);                                 \
                                                                                                                       \
		if (calls)                                                                                             \
			calls->count++;                                                                                \
	}

/* A histogram map has as many elements for each CPU as its program tells apart. */
#define HISTOGRAMS(name) MAPPED(name, struct histogram)

/* floor(log2(value)) for value > 0; the instruction set has no count of leading zeros. */
static __always_inline __u32 log2_floor(__u64 value)
{
	__u32 high = value >> 32, rest, shift, log = 0;

	if (high) {
		log = 32;
		rest = high;
	} else {
		rest = value;
	}
	shift = (rest > 0xffff) << 4;
	rest >>= shift;
	log += shift;
	shift = (rest > 0xff) << 3;
	rest >>= shift;
	log += shift;
	shift = (rest > 0xf) << 2;
	rest >>= shift;
	log += shift;
	shift = (rest > 0x3) << 1;
	rest >>= shift;
	log += shift;
	return log + (rest >> 1);
}

static __always_inline __u32 histogram_bucket(__u64 value)
{
	__u32 shift, index;

	if (value < 2 << HISTOGRAM_GROUPING)
		return value;
	shift = log2_floor(value) - HISTOGRAM_GROUPING;
	index = (shift << HISTOGRAM_GROUPING) + (__u32)(value >> shift);
	return index < HISTOGRAM_BUCKETS ? index : HISTOGRAM_BUCKETS - 1;
}

/* Adds `value` to element `slot` (of `slots` a CPU) of a histogram map. The element is this CPU's own; where a program
 * can be interrupted by itself (system calls), the caller takes histogram_add_atomic. */
static __always_inline void histogram_add(void *map, __u32 slots, __u32 slot, __u64 value)
{
	__u32 index = bpf_get_smp_processor_id() * slots + slot;
	struct histogram *histogram = bpf_map_lookup_elem(map, &index);
	__u64 bucket = histogram_bucket(value);

	/* The verifier must see the comparison after all arithmetic. */
	barrier_var(bucket);
	if (!histogram || bucket >= HISTOGRAM_BUCKETS)
		return;
	histogram->sum += value;
	histogram->buckets[bucket]++;
}

/* Adds `value` to element `index`, which several CPUs or programs may add to at once. */
static __always_inline void histogram_add_shared(void *map, __u32 index, __u64 value)
{
	struct histogram *histogram = bpf_map_lookup_elem(map, &index);
	__u64 bucket = histogram_bucket(value);

	/* The verifier must see the comparison after all arithmetic. */
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

/* Roles of processes by tgid, in pages: user space writes them, no program does. 0 is a process nobody watches. */
#define ROLE_PAGE 4096
#define MAX_ROLES 8 /* with 0 */

struct role_page {
	__u8 role[ROLE_PAGE];
};

#define ROLES()                                                                                                        \
	MAPPED(roles, struct role_page);                                                                               \
	static __always_inline __u32 role_of(__u32 tgid)                                                               \
	{                                                                                                              \
		__u32 page = tgid / ROLE_PAGE;                                                                         \
		struct role_page *found = bpf_map_lookup_elem(&roles, &page);                                          \
                                                                                                                       \
		return found ? found->role[tgid % ROLE_PAGE] % MAX_ROLES : 0;                                          \
	}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
