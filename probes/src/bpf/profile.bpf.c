/* Samples the stacks of the watched processes; the method of bcc's profile and of perf record.
 *
 * Hook: a perf event on every CPU, of hardware cycles or of the CPU clock. Stacks are found by frame
 * pointers, without page faults. A sample is one record of a ring buffer, which user space reads from
 * mapped memory at each tick: a record wakes no process.
 *
 * The overflow of hardware cycles is an NMI on x86: the program may interrupt any code of the kernel.
 * It takes no lock but that of the ring buffer, which an NMI only tries: the sample is lost if it is
 * taken. A CPU has one such event, so its scratch memory has one user. */
#include "loadprint.bpf.h"

/* FRAME: bytes of an address. */
enum limits { FRAME = 8, KERNEL_FRAMES = 48, USER_FRAMES = 96, STACK_BYTES = (KERNEL_FRAMES + USER_FRAMES) * FRAME };

ROLES();
CALL_COUNTER(take_sample);

/* The frames of the kernel, then those of the process, each from the innermost one. */
struct sample {
	__u64 period;        /* events since the previous sample of this CPU; differs between samples of a stack */
	__u64 address_space; /* differs between the programs that a process executes */
	__u32 tgid;
	__u16 role;
	__u16 kernel_bytes;
	__u64 frames[KERNEL_FRAMES + USER_FRAMES];
};

MAP(scratch, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct sample, 1);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} samples SEC(".maps");

MAPPED_ARRAY(lost_samples, __u64, 1);

SEC("perf_event")
int take_sample(struct bpf_perf_event_data *ctx)
{
	__u32 zero = 0, tgid = bpf_get_current_pid_tgid() >> 32, role = role_of(tgid);
	struct sample *sample;
	__u64 *lost, size;
	long kernel, user;

	count_take_sample();
	if (!role)
		return 0;
	sample = bpf_map_lookup_elem(&scratch, &zero);
	if (!sample)
		return 0;
	kernel = bpf_get_stack(ctx, sample->frames, KERNEL_FRAMES * FRAME, 0);
	/* An error: the CPU was in user space. */
	if (kernel < 0 || kernel > KERNEL_FRAMES * FRAME)
		kernel = 0;
	barrier_var(kernel);
	if (kernel < 0 || kernel > KERNEL_FRAMES * FRAME)
		return 0;
	user = bpf_get_stack(ctx, (void *)sample->frames + kernel, USER_FRAMES * FRAME, BPF_F_USER_STACK);
	if (user < 0)
		user = 0;
	sample->period = ctx->sample_period;
	sample->address_space = (__u64)BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), mm);
	sample->tgid = tgid;
	sample->role = role;
	sample->kernel_bytes = kernel;
	size = sizeof(*sample) - STACK_BYTES + kernel + user;
	barrier_var(size);
	if (size > sizeof(*sample))
		return 0;
	if (bpf_ringbuf_output(&samples, sample, size, BPF_RB_NO_WAKEUP)) {
		lost = bpf_map_lookup_elem(&lost_samples, &zero);
		if (lost)
			__sync_fetch_and_add(lost, 1);
	}
	return 0;
}
