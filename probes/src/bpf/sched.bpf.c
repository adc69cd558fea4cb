/* Run-queue latency, off-CPU time by reason, switches, wakeups and migrations. The ideas are those of bcc's runqlat,
 * offcputime and cpudist.
 *
 * Hooks: sched_switch, sched_wakeup and sched_migrate_task. No clock is read and no wakeup is stamped: the scheduler
 * has the clock of its run queue (struct rq, fresh at every switch) and, for /proc/PID/schedstat, keeps how long each
 * task has waited (struct sched_info). A wait is what is new in that since the task last came on a CPU: the kernel's
 * own figure, exact to the nanosecond, also where a waiting task is moved to another CPU. Off-CPU time is the rest of
 * the time between two turns on a CPU. As in schedstat, a task that is preempted between announcing its sleep and
 * sleeping has no wait. */
#include "loadprint.bpf.h"

/* Reasons for being off-CPU; the names are in ebpf/sched/mod.rs. */
enum reason { BLOCK_IO, LOCK, NETWORK, SLEEP, OTHER, REASONS, BY_FILE = REASONS };

/* The roles that are told apart, and "nobody's": slots of a CPU in the maps of waits and switches. */
const volatile __u32 slots = 1;

/* The reason of each system call by its number on this architecture; user space knows the numbers. BY_FILE: it is that
 * of the file whose descriptor is the first argument. */
#define CALLS 512
const volatile __u8 reason_of_call[CALLS];

HISTOGRAMS(waits);
HISTOGRAMS(off_cpu);
ROLES();

/* One cache line for each CPU and role. */
struct switches {
	__u64 voluntary;
	__u64 involuntary;
	__u64 wakeups;
	__u64 migrations;
	__u64 unused[4];
};

MAPPED(switches, struct switches);

/* What is remembered of a task; the kernel frees it with the task, so that nothing is left to a later one of its
 * number. */
struct turn {
	__u64 waited;     /* how long it had waited in all when it last came on a CPU */
	__u64 arrivals;   /* how often it had come on a CPU by then */
	__u64 blocked_at; /* 0: it is not blocked, or was not watched when it blocked */
	__u32 reason;
	__u32 seen;
};

OF_TASKS(turns, struct turn);

/* The first switch that was seen: who waited before it is not counted. */
__u64 began;

static __always_inline bool is_blocking(struct task_struct *task)
{
	struct task_struct___state *before = (void *)task;

	return bpf_core_field_exists(task->__state) ? task->__state != 0 : before->state != 0;
}

static __always_inline struct switches *switches_of(__u32 role)
{
	__u32 index = bpf_get_smp_processor_id() * slots + role;

	return bpf_map_lookup_elem(&switches, &index);
}

/* Where the system call was entered from; these registers outlive it. */
static __always_inline void call_of(struct task_struct *task, __u64 *number, __u64 *first)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm64 *arm64 = (void *)regs;

	if (bpf_core_field_exists(x86->orig_ax)) {
		*number = x86->orig_ax;
		*first = x86->di;
	} else if (bpf_core_field_exists(arm64->syscallno)) {
		*number = (__u32)arm64->syscallno;
		*first = arm64->orig_x0;
	}
}

static __always_inline __u32 reason_of_file(struct task_struct *task, __u32 descriptor)
{
	struct fdtable *table = task->files->fdt;
	struct file **place = table->fd, *file = 0;
	__u32 type;

	if (descriptor >= table->max_fds || bpf_probe_read_kernel(&file, sizeof(file), place + descriptor))
		return OTHER;
	type = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	if (type == S_IFSOCK)
		return NETWORK;
	return type == S_IFREG || type == S_IFBLK ? BLOCK_IO : OTHER;
}

/* Why the current task blocks. in_iowait is the block layer's own word; else it is the system call that says what is
 * waited for. A page fault that waits for something else than a device, and a thread of the kernel, have none: "other".
 */
static __always_inline __u32 reason_of(struct task_struct *task)
{
	__u64 number = ~0ULL, first = 0;
	__u32 reason = OTHER;

	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return BLOCK_IO;
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return OTHER;
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		call_of(task, &number, &first);
	if (number < CALLS)
		reason = reason_of_call[number];
	return reason == BY_FILE ? reason_of_file(task, first) : reason;
}

static __always_inline void goes(struct task_struct *task, bool preempt, __u64 now)
{
	__u32 role = role_of(task->tgid);
	struct switches *switches = switches_of(role);
	/* As the kernel tells voluntary from involuntary (kernel/sched/core.c, __schedule). */
	bool voluntary = !preempt && is_blocking(task);
	struct turn *turn;

	if (!switches)
		return;
	if (voluntary)
		switches->voluntary++;
	else
		switches->involuntary++;
	if (!role)
		return;
	turn = turns_of(task, true);
	if (!turn)
		return;
	turn->waited = task->sched_info.run_delay;
	turn->arrivals = task->sched_info.pcount;
	turn->seen = 1;
	turn->blocked_at = voluntary ? now : 0;
	if (voluntary)
		turn->reason = reason_of(task);
}

static __always_inline void comes(struct task_struct *task, __u64 now)
{
	__u32 role = role_of(task->tgid);
	/* The last part of the wait is added to run_delay just after this hook. */
	__u64 queued = task->sched_info.last_queued, delay = task->sched_info.run_delay;
	__u64 arrivals = task->sched_info.pcount;
	__u64 last = queued ? now - queued : 0, wait, off;
	struct turn *turn = turns_of(task, true);

	if (!turn)
		return;
	/* A turn that this program did not see, for the tracepoint is not always called, is left out with its wait. */
	wait = turn->seen && turn->arrivals == arrivals ? delay + last - turn->waited : last;
	turn->waited = delay + last;
	turn->arrivals = arrivals + (queued != 0);
	if (queued && (turn->seen || queued >= began) && (__s64)wait >= 0)
		histogram_add(&waits, slots, role, wait);
	turn->seen = 1;
	if (!turn->blocked_at)
		return;
	off = now - wait - turn->blocked_at;
	turn->blocked_at = 0;
	if (role && (__s64)off >= 0)
		histogram_add(&off_cpu, (slots - 1) * REASONS, (role - 1) * REASONS + turn->reason, off);
}

COUNTED(sched_switch);

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	count_sched_switch();
	/* Every task has a place in a fair run queue of its CPU, whatever its policy: the way to the CPU's own run
	 * queue. */
	__u64 now = next->se.cfs_rq->rq->clock;

	if (!began)
		began = now;
	/* 0 is the idle task of every CPU. */
	if (prev->pid)
		goes(prev, preempt, now);
	if (next->pid)
		comes(next, now);
	return 0;
}

COUNTED(sched_wakeup);

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task)
{
	count_sched_wakeup();
	struct switches *switches = switches_of(role_of(task->tgid));

	if (switches)
		switches->wakeups++;
	return 0;
}

COUNTED(sched_migrate_task);

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task)
{
	count_sched_migrate_task();
	struct switches *switches = switches_of(role_of(task->tgid));

	if (switches)
		switches->migrations++;
	return 0;
}
