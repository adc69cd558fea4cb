/* Measures latency and size of block I/O requests by device and operation; the method of bcc's
 * biolatency and bitesize.
 *
 * Hooks: block_rq_insert (an I/O scheduler or a queue takes the request), block_rq_issue (the
 * driver takes it), block_rq_complete (the device has completed all of it). Flushes are requests of
 * the flush machinery (block/blk-flush.c), issued and completed like any other request. A file
 * system asks for a flush with an empty write that waits for that request: the write is completed
 * without being issued, and is not counted. The block layer splits a FUA or PREFLUSH request that
 * the device does not support into a flush and a plain write. */
#include "loadprint.bpf.h"

/* MINOR_BITS: a dev_t in the kernel has the major number above the minor number
 * (include/linux/kdev_t.h). */
enum limits { MAX_DEVICES = 64, MINOR_BITS = 20 };

SHARED_ENUM(limits);

enum operation { READ, WRITE, WRITE_FUA, FLUSH, DISCARD, OTHER, OPERATIONS };

SHARED_ENUM(operation);

/* Devices that have their own rows; all others share the slots after them. */
const volatile __u32 devices = 1;
/* Sets of histograms, a power of two: one for each CPU, but on large hosts several CPUs share one. */
const volatile __u32 sets = 1;

HISTOGRAMS(queue_time);
HISTOGRAMS(device_time);
HISTOGRAMS(sizes);

struct request_times {
	__u64 inserted;
	__u64 issued;
	__u32 bytes;
	__u32 slot;
};

/* By address of the request. Drivers reuse the requests of their tag sets, so the number of stale
 * entries is bounded. */
MAP(in_flight, BPF_MAP_TYPE_HASH, __u64, struct request_times, 16384);

/* The number of each device, by dev_t. */
MAP(device_numbers, BPF_MAP_TYPE_HASH, __u32, __u32, 4 * MAX_DEVICES);

/* The dev_t of each number that is in use. */
MAP(number_owners, BPF_MAP_TYPE_HASH, __u32, __u32, MAX_DEVICES);

/* For user space: the dev_t of each number, 0 while the number is free. */
MAPPED_ARRAY(numbered_devices, __u64, MAX_DEVICES);

/* For user space: requests that were not measured, because too many were in flight. */
MAPPED_ARRAY(lost, __u64, (MAX_DEVICES + 1) * OPERATIONS);

/* The program assigns the numbers, so that the first request of a new disk is already counted. */
static __noinline __u32 new_device(__u32 dev)
{
	__u32 number, key, none = devices, *assigned;
	__u64 numbered = dev, *device;

	for (number = 0; number < MAX_DEVICES && number < devices; number++) {
		/* The verifier may lose track of a loop counter whose address is taken. */
		key = number;
		if (bpf_map_update_elem(&number_owners, &key, &dev, BPF_NOEXIST))
			continue;
		if (bpf_map_update_elem(&device_numbers, &dev, &key, BPF_NOEXIST)) {
			/* Another CPU was faster. */
			bpf_map_delete_elem(&number_owners, &key);
			assigned = bpf_map_lookup_elem(&device_numbers, &dev);
			return assigned ? *assigned : none;
		}
		device = bpf_map_lookup_elem(&numbered_devices, &key);
		if (device)
			*device = numbered;
		return number;
	}
	bpf_map_update_elem(&device_numbers, &dev, &none, BPF_NOEXIST);
	return none;
}

static __always_inline struct gendisk *disk_of(struct request *rq)
{
	if (bpf_core_field_exists(struct request_queue, disk))
		return BPF_CORE_READ(rq, q, disk);
	return BPF_CORE_READ((struct request___before_5_17 *)rq, rq_disk);
}

static __always_inline enum operation operation_of(struct request *rq)
{
	__u32 flags = rq->cmd_flags;

	switch (flags & 0xff) { /* REQ_OP_MASK; these four numbers are the same in all kernels */
	case 0:
		return READ;
	case 1:
		return flags & (1U << bpf_core_enum_value(enum req_flag_bits, __REQ_FUA)) ? WRITE_FUA : WRITE;
	case 2:
		return FLUSH;
	case 3:
		return DISCARD;
	default:
		return OTHER;
	}
}

/* The slot of the request in the histograms, or -1 for a command without a disk. */
static __always_inline __s32 slot_of(struct request *rq)
{
	struct gendisk *disk = disk_of(rq);
	__u32 dev, *number;

	if (!disk)
		return -1;
	dev = BPF_CORE_READ(disk, major) << MINOR_BITS | BPF_CORE_READ(disk, first_minor);
	number = bpf_map_lookup_elem(&device_numbers, &dev);
	return (number ? *number : new_device(dev)) * OPERATIONS + operation_of(rq);
}

static __always_inline struct request *request_of(__u64 *ctx)
{
	return (struct request *)(bpf_core_type_exists(btf_trace_block_rq_issue) ? ctx[0] : ctx[1]);
}

static __always_inline void add(void *map, __u32 slot, __u64 value)
{
	__u32 set = bpf_get_smp_processor_id() & (sets - 1);

	histogram_add_shared(map, set * (devices + 1) * OPERATIONS + slot, value);
}

CALL_COUNTER(block_rq_insert);

SEC("tp_btf/block_rq_insert")
int block_rq_insert(__u64 *ctx)
{
	count_block_rq_insert();
	struct request_times times = {.inserted = bpf_ktime_get_ns()};
	__u64 key = (__u64)request_of(ctx);

	bpf_map_update_elem(&in_flight, &key, &times, BPF_ANY);
	return 0;
}

CALL_COUNTER(block_rq_issue);

SEC("tp_btf/block_rq_issue")
int block_rq_issue(__u64 *ctx)
{
	count_block_rq_issue();
	struct request *rq = request_of(ctx);
	__u64 key = (__u64)rq, now = bpf_ktime_get_ns(), *count;
	struct request_times direct = {}, *times;
	__s32 slot = slot_of(rq);

	if (slot < 0)
		return 0;
	times = bpf_map_lookup_elem(&in_flight, &key);
	if (times) {
		/* A request that the driver requeues is issued again; its time in the queue is
		 * counted once. */
		if (times->inserted)
			add(&queue_time, slot, now - times->inserted);
		times->inserted = 0;
		times->issued = now;
		times->bytes = rq->__data_len;
		times->slot = slot;
		return 0;
	}
	direct.issued = now;
	direct.bytes = rq->__data_len;
	direct.slot = slot;
	if (!bpf_map_update_elem(&in_flight, &key, &direct, BPF_ANY))
		return 0;
	count = bpf_map_lookup_elem(&lost, &slot);
	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

/* A request that is merged into another one is never issued. */
CALL_COUNTER(block_rq_merge);

SEC("tp_btf/block_rq_merge")
int block_rq_merge(__u64 *ctx)
{
	count_block_rq_merge();
	__u64 key = (__u64)request_of(ctx);

	bpf_map_delete_elem(&in_flight, &key);
	return 0;
}

CALL_COUNTER(block_rq_complete);

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *rq, int error, unsigned int bytes)
{
	count_block_rq_complete();
	__u64 key = (__u64)rq;
	struct request_times *times = bpf_map_lookup_elem(&in_flight, &key);

	if (!times || !times->issued)
		return 0;
	/* A device may complete a request in parts; __data_len is what remains before this part. */
	if (bytes < rq->__data_len)
		return 0;
	add(&device_time, times->slot, bpf_ktime_get_ns() - times->issued);
	add(&sizes, times->slot, times->bytes);
	bpf_map_delete_elem(&in_flight, &key);
	return 0;
}
