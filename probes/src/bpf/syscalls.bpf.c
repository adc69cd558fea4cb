/* System calls of the watched processes: how many, how long, how many failed. The idea is that of bcc's syscount.
 *
 * Hooks: sys_enter, sys_exit. Since Linux 6.13 programs on these two may be preempted, and another thread's call may
 * run in between on the same CPU; so all that CPUs count is added to atomically. */
#include "loadprint.bpf.h"

#define CALLS     512 /* of a role, with the last two */
#define COMPAT    (CALLS - 1)
#define OTHER     (CALLS - 2)
#define TIMED     4 /* calls that have a histogram */
#define MAX_ERRNO 4095

/* What thread_info says of a 32-bit call: arch/x86/include/asm/thread_info.h, arch/arm64/include/asm/thread_info.h. */
#define X86_TS_COMPAT   0x2
#define ARM64_TIF_32BIT (1 << 22)

const volatile __u32 roles_named = 1;
/* Numbers of this architecture. */
const volatile __u32 sigreturn = OTHER;
const volatile __u32 timed[TIMED];

struct call {
	__u64 count;
	__u64 time_ns;
	__u64 errors;
};

/* roles_named * CALLS for each CPU; user space sets the number. */
MAPPED(calls, struct call);

/* 1 for a call that a role has made: user space reads only the counters of these. */
struct happened {
	__u8 call[CALLS];
};

MAPPED(happened, struct happened);

/* roles_named * TIMED for each CPU. */
HISTOGRAMS(call_time);

ROLES();

/* The call that a thread is in. It goes with the thread, so that one which ends in a call leaves nothing behind. */
struct under_way {
	__u64 began;
	__u32 call;
};

OF_TASKS(under_way, struct under_way);

static __always_inline bool is_compat(struct task_struct *task)
{
	if (bpf_core_field_exists(task->thread_info.status))
		return CURRENT_FIELD(task, thread_info.status) & X86_TS_COMPAT;
	return CURRENT_FIELD(task, thread_info.flags) & ARM64_TIF_32BIT;
}

COUNTED(sys_enter);

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long id)
{
	count_sys_enter();
	struct under_way *call;
	struct task_struct *task;

	if (!role_of(bpf_get_current_pid_tgid() >> 32))
		return 0;
	task = current_task();
	call = under_way_of(task, true);
	if (!call)
		return 0;
	if (is_compat(task))
		call->call = COMPAT;
	else
		call->call = (unsigned long)id < OTHER ? id : OTHER;
	call->began = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void count(__u32 role, __u32 id, __u64 took, long ret)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u32 index = (cpu * roles_named + role) * CALLS + id;
	struct call *call = bpf_map_lookup_elem(&calls, &index);
	struct happened *seen = bpf_map_lookup_elem(&happened, &role);

	if (!call || !seen)
		return;
	if (!seen->call[id % CALLS])
		seen->call[id % CALLS] = 1;
	__sync_fetch_and_add(&call->count, 1);
	__sync_fetch_and_add(&call->time_ns, took);
	/* What rt_sigreturn gives is the register of what was interrupted. */
	if (ret < 0 && ret >= -MAX_ERRNO && id != sigreturn)
		__sync_fetch_and_add(&call->errors, 1);
	for (__u32 place = 0; place < TIMED; place++)
		if (id == timed[place])
			histogram_add_atomic(&call_time, roles_named * TIMED, role * TIMED + place, took);
}

COUNTED(sys_exit);

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	count_sys_exit();
	struct task_struct *task = current_task();
	struct under_way *call = under_way_of(task, false);
	__u64 began;
	__u32 role;

	/* 0: it was under way when the program was attached, or the process was first watched. */
	if (!call || !call->began)
		return 0;
	began = call->began;
	/* Also where the process is not watched any more: what stays here would begin a later call. */
	call->began = 0;
	role = role_of(bpf_get_current_pid_tgid() >> 32);
	if (role && role <= roles_named)
		count(role - 1, call->call % CALLS, bpf_ktime_get_ns() - began, ret);
	return 0;
}
