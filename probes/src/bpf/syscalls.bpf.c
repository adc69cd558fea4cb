/* Counts and times the system calls of the watched processes, and counts errors; the method of
 * bcc's syscount.
 *
 * Hooks: sys_enter, sys_exit. Since Linux 6.13 programs on these two can be preempted, and a call
 * of another thread can run in between on the same CPU. Counters are therefore added to atomically. */
#include "loadprint.bpf.h"

/* CALLS: slots of a role; the last two are for 32-bit calls and for numbers that have no slot.
 * TIMED: calls that have a histogram. */
enum limits { CALLS = 512, COMPAT = CALLS - 1, OTHER = CALLS - 2, TIMED = 4 };

SHARED_ENUM(limits);

#define MAX_ERRNO 4095

/* Marks of a 32-bit call: arch/x86/include/asm/thread_info.h, arch/arm64/include/asm/thread_info.h. */
#define X86_TS_COMPAT   0x2
#define ARM64_TIF_32BIT (1 << 22)

const volatile __u32 role_count = 1;
/* Numbers on this architecture. */
const volatile __u32 sigreturn = OTHER;
const volatile __u32 timed[TIMED];

struct call_counters {
	__u64 count;
	__u64 time_ns;
	__u64 errors;
};

/* role_count * CALLS for each CPU. */
MAPPED_ARRAY_SIZED_AT_LOAD(call_counters, struct call_counters);

/* By role: 1 for each call that was made. User space reads only the counters of these. */
struct seen_calls {
	__u8 call[CALLS];
};

MAPPED_ARRAY_SIZED_AT_LOAD(seen_calls, struct seen_calls);

/* role_count * TIMED for each CPU. */
HISTOGRAMS(call_time);

ROLES();

/* The call that a thread is in. It is stored with the thread, so that a call that ends the thread
 * leaves no entry. */
struct call {
	__u64 start;
	__u32 slot;
};

TASK_STORAGE(current_calls, struct call);

static __always_inline bool is_compat(struct task_struct *task)
{
	if (bpf_core_field_exists(task->thread_info.status))
		return CURRENT_FIELD(task, thread_info.status) & X86_TS_COMPAT;
	return CURRENT_FIELD(task, thread_info.flags) & ARM64_TIF_32BIT;
}

CALL_COUNTER(sys_enter);

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long id)
{
	count_sys_enter();
	struct call *call;
	struct task_struct *task;

	if (!role_of(bpf_get_current_pid_tgid() >> 32))
		return 0;
	task = current_task();
	call = current_calls_of(task, true);
	if (!call)
		return 0;
	if (is_compat(task))
		call->slot = COMPAT;
	else
		call->slot = (unsigned long)id < OTHER ? id : OTHER;
	call->start = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void count(__u32 role, __u32 slot, __u64 time_ns, long ret)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u32 index = (cpu * role_count + role) * CALLS + slot;
	struct call_counters *counters = bpf_map_lookup_elem(&call_counters, &index);
	struct seen_calls *seen = bpf_map_lookup_elem(&seen_calls, &role);

	if (!counters || !seen)
		return;
	if (!seen->call[slot % CALLS])
		seen->call[slot % CALLS] = 1;
	__sync_fetch_and_add(&counters->count, 1);
	__sync_fetch_and_add(&counters->time_ns, time_ns);
	/* The return value of rt_sigreturn is a register of the interrupted code. */
	if (ret < 0 && ret >= -MAX_ERRNO && slot != sigreturn)
		__sync_fetch_and_add(&counters->errors, 1);
	for (__u32 i = 0; i < TIMED; i++)
		if (slot == timed[i])
			histogram_add_atomic(&call_time, role_count * TIMED, role * TIMED + i, time_ns);
}

CALL_COUNTER(sys_exit);

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	count_sys_exit();
	struct task_struct *task = current_task();
	struct call *call = current_calls_of(task, false);
	__u64 start;
	__u32 role;

	/* 0: the call started before the program was attached or the process was watched. */
	if (!call || !call->start)
		return 0;
	start = call->start;
	/* Also if the process is no longer watched: a later call must not use this start. */
	call->start = 0;
	role = role_of(bpf_get_current_pid_tgid() >> 32);
	if (role && role <= role_count)
		count(role - 1, call->slot % CALLS, bpf_ktime_get_ns() - start, ret);
	return 0;
}
