/* Measures run-queue latency and off-CPU time by reason, and counts switches, wakeups and
 * migrations; the methods of bcc's runqlat, offcputime and cpudist.
 *
 * Hooks: sched_switch, sched_wakeup and sched_migrate_task. The program reads no clock and stores
 * no time of a wakeup. It uses the clock of the run queue (struct rq), which the scheduler updates
 * at every switch, and the waiting time of each task, which the scheduler adds up for
 * /proc/PID/schedstat (struct sched_info). A wait is the increase of that sum between two switches
 * of a task: the kernel's own value, exact to the nanosecond, also when a waiting task migrates to
 * another CPU. Off-CPU time is the rest of the time between the two switches. As in schedstat, a
 * task that is preempted after it sets its state to sleeping and before it sleeps has no wait. */
#include "loadprint.bpf.h"

/* Why a task is off the CPU. BY_FILE: the file whose descriptor is the first argument of the system
 * call decides. */
enum reason { BLOCK_IO, LOCK, NETWORK, SLEEP, OTHER, REASONS, BY_FILE = REASONS };

/* Slots of a CPU in the maps of waits and switches: one for each role, the first for processes
 * without a role. */
const volatile __u32 slots = 1;

/* The reason of each system call by its number on this architecture. */
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

MAPPED_ARRAY_SIZED_AT_LOAD(switches, struct switches);

/* A task at its last switch. */
struct last_switch {
	__u64 run_delay;  /* time that it had waited for a CPU */
	__u64 pcount;     /* times that it had run */
	__u64 blocked_at; /* 0: it is not blocked, or was not watched when it blocked */
	enum reason reason;
	__u32 is_known;
};

TASK_STORAGE(last_switches, struct last_switch);

/* The time of the first switch; a wait that started earlier is not counted. */
__u64 first_switch;

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

/* Reads the registers with which the task entered the system call; they are unchanged until it
 * returns. */
static __always_inline void call_of(struct task_struct *task, __u64 *number, __u64 *first)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___aarch64 *arm64 = (void *)regs;

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
	struct file **files = table->fd, *file = 0;
	__u32 type;

	if (descriptor >= table->max_fds || bpf_probe_read_kernel(&file, sizeof(file), files + descriptor))
		return OTHER;
	type = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	if (type == S_IFSOCK)
		return NETWORK;
	return type == S_IFREG || type == S_IFBLK ? BLOCK_IO : OTHER;
}

/* Why the current task blocks: block I/O if the kernel has set in_iowait, else the reason of its
 * system call. Kernel threads have no system call, and neither has a page fault that waits for
 * something other than a device: OTHER. */
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

static __always_inline void switch_out(struct task_struct *task, bool preempt, __u64 now)
{
	__u32 role = role_of(task->tgid);
	struct switches *switches = switches_of(role);
	/* The rule of the kernel for voluntary switches (kernel/sched/core.c, __schedule). */
	bool voluntary = !preempt && is_blocking(task);
	struct last_switch *last;

	if (!switches)
		return;
	if (voluntary)
		switches->voluntary++;
	else
		switches->involuntary++;
	if (!role)
		return;
	last = last_switches_of(task, true);
	if (!last)
		return;
	last->run_delay = task->sched_info.run_delay;
	last->pcount = task->sched_info.pcount;
	last->is_known = 1;
	last->blocked_at = voluntary ? now : 0;
	if (voluntary)
		last->reason = reason_of(task);
}

static __always_inline void switch_in(struct task_struct *task, __u64 now)
{
	__u32 role = role_of(task->tgid);
	/* The kernel adds the last part of the wait to run_delay just after this hook. */
	__u64 queued = task->sched_info.last_queued, run_delay = task->sched_info.run_delay;
	__u64 pcount = task->sched_info.pcount;
	__u64 last_part = queued ? now - queued : 0, wait, blocked;
	struct last_switch *last = last_switches_of(task, true);

	if (!last)
		return;
	/* The tracepoint is not called at every switch. If pcount shows that this program missed
	 * one, the wait before it is not counted. */
	wait = last->is_known && last->pcount == pcount ? run_delay + last_part - last->run_delay : last_part;
	last->run_delay = run_delay + last_part;
	last->pcount = pcount + (queued != 0);
	if (queued && (last->is_known || queued >= first_switch) && (__s64)wait >= 0)
		histogram_add(&waits, slots, role, wait);
	last->is_known = 1;
	if (!last->blocked_at)
		return;
	blocked = now - wait - last->blocked_at;
	last->blocked_at = 0;
	if (role && (__s64)blocked >= 0)
		histogram_add(&off_cpu, (slots - 1) * REASONS, (role - 1) * REASONS + last->reason, blocked);
}

CALL_COUNTER(sched_switch);

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	count_sched_switch();
	/* Every task has a fair run queue of its CPU, regardless of its policy; that leads to the run
	 * queue of the CPU. */
	__u64 now = next->se.cfs_rq->rq->clock;

	if (!first_switch)
		first_switch = now;
	/* 0 is the idle task of every CPU. */
	if (prev->pid)
		switch_out(prev, preempt, now);
	if (next->pid)
		switch_in(next, now);
	return 0;
}

CALL_COUNTER(sched_wakeup);

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task)
{
	count_sched_wakeup();
	struct switches *switches = switches_of(role_of(task->tgid));

	if (switches)
		switches->wakeups++;
	return 0;
}

CALL_COUNTER(sched_migrate_task);

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task)
{
	count_sched_migrate_task();
	struct switches *switches = switches_of(role_of(task->tgid));

	if (switches)
		switches->migrations++;
	return 0;
}
