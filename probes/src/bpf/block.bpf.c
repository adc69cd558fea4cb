/* Latency and size of block I/O requests by device and operation. The idea is that of bcc's biolatency and bitesize.
 *
 * Hooks: block_rq_insert (an I/O scheduler or a queue takes the request), block_rq_issue (the driver takes it),
 * block_rq_complete (the device is done with all of it). Flushes are requests of the flush machinery
 * (block/blk-flush.c) and are issued and completed as any other. The empty write by which a file system asks for a
 * flush only waits for that request: it is completed without ever being issued, and is not counted. A request that is
 * marked FUA or PREFLUSH and that the device cannot take so comes here in its parts, a flush and a plain write. */
#include "loadprint.bpf.h"

#define MAX_DEVICES 64

enum operation { READ, WRITE, WRITE_FUA, FLUSH, DISCARD, OTHER, OPERATIONS };

/* Devices that have rows of their own; all further ones share those behind them. */
const volatile __u32 devices = 1;
/* Sets of histograms, a power of two: as many as CPUs, but on large hosts several CPUs share one. */
const volatile __u32 sets = 1;

HISTOGRAMS(queue_time);
HISTOGRAMS(device_time);
HISTOGRAMS(sizes);

struct flight {
	__u64 inserted;
	__u64 issued;
	__u32 bytes;
	__u32 slot;
};

/* Requests are kept in the drivers' tag sets and used again, so that what is left behind is bounded. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct flight);
} in_flight SEC(".maps");

/* Number of a device by its dev_t, and which dev_t has taken a number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4 * MAX_DEVICES);
	__type(key, __u32);
	__type(value, __u32);
} numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_DEVICES);
	__type(key, __u32);
	__type(value, __u32);
} owners SEC(".maps");

/* For user space: the dev_t of each number, 0 while it is free. */
MAPPED_OF(known, __u64, MAX_DEVICES);

/* For user space: requests that could not be followed, because too many were in flight. */
MAPPED_OF(lost, __u64, (MAX_DEVICES + 1) * OPERATIONS);

/* Numbers are given here and not in user space, so that a new disk is counted from its first request on. */
static __noinline __u32 new_device(__u32 dev)
{
	__u32 number, key, none = devices, *taken;
	__u64 published = dev, *place;

	for (number = 0; number < MAX_DEVICES && number < devices; number++) {
		/* A counter whose address is taken is one that the verifier may not be able to follow. */
		key = number;
		if (bpf_map_update_elem(&owners, &key, &dev, BPF_NOEXIST))
			continue;
		if (bpf_map_update_elem(&numbers, &dev, &key, BPF_NOEXIST)) {
			/* Another CPU was faster. */
			bpf_map_delete_elem(&owners, &key);
			taken = bpf_map_lookup_elem(&numbers, &dev);
			return taken ? *taken : none;
		}
		place = bpf_map_lookup_elem(&known, &key);
		if (place)
			*place = published;
		return number;
	}
	bpf_map_update_elem(&numbers, &dev, &none, BPF_NOEXIST);
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

	switch (flags & 0xff) { /* REQ_OP_MASK; these four numbers never changed */
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

/* The request's place among the histograms, or -1 for a command to no disk. */
static __always_inline __s32 slot_of(struct request *rq)
{
	struct gendisk *disk = disk_of(rq);
	__u32 dev, *number;

	if (!disk)
		return -1;
	dev = BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
	number = bpf_map_lookup_elem(&numbers, &dev);
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

COUNTED(block_rq_insert);

SEC("tp_btf/block_rq_insert")
int block_rq_insert(__u64 *ctx)
{
	count_block_rq_insert();
	struct flight flight = {.inserted = bpf_ktime_get_ns()};
	__u64 key = (__u64)request_of(ctx);

	bpf_map_update_elem(&in_flight, &key, &flight, BPF_ANY);
	return 0;
}

COUNTED(block_rq_issue);

SEC("tp_btf/block_rq_issue")
int block_rq_issue(__u64 *ctx)
{
	count_block_rq_issue();
	struct request *rq = request_of(ctx);
	__u64 key = (__u64)rq, now = bpf_ktime_get_ns(), *count;
	struct flight direct = {}, *flight;
	__s32 slot = slot_of(rq);

	if (slot < 0)
		return 0;
	flight = bpf_map_lookup_elem(&in_flight, &key);
	if (flight) {
		/* A request that the driver gave back is issued again: its time in the queue was counted. */
		if (flight->inserted)
			add(&queue_time, slot, now - flight->inserted);
		flight->inserted = 0;
		flight->issued = now;
		flight->bytes = rq->__data_len;
		flight->slot = slot;
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

/* A request that is merged into another is never issued. */
COUNTED(block_rq_merge);

SEC("tp_btf/block_rq_merge")
int block_rq_merge(__u64 *ctx)
{
	count_block_rq_merge();
	__u64 key = (__u64)request_of(ctx);

	bpf_map_delete_elem(&in_flight, &key);
	return 0;
}

COUNTED(block_rq_complete);

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *rq, int error, unsigned int bytes)
{
	count_block_rq_complete();
	__u64 key = (__u64)rq;
	struct flight *flight = bpf_map_lookup_elem(&in_flight, &key);

	if (!flight || !flight->issued)
		return 0;
	/* A device may complete a request in parts; the last one has all that is left. */
	if (bytes < rq->__data_len)
		return 0;
	add(&device_time, flight->slot, bpf_ktime_get_ns() - flight->issued);
	add(&sizes, flight->slot, flight->bytes);
	bpf_map_delete_elem(&in_flight, &key);
	return 0;
}
