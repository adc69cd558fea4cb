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
#include "thread_state.bpf.h"

/* Why a task is off the CPU. */
enum reason { BLOCK_IO, LOCK, NETWORK, SLEEP, OTHER, REASONS };

SHARED_ENUM(reason);

/* Slots of a CPU in the maps of waits and switches: one for each role, the first for processes
 * without a role. */
const volatile __u32 slots = 1;

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

/* Threads that serve a connection, and those that do not. */
enum thread_class { WITHOUT_CONNECTION, WITH_CONNECTION, THREAD_CLASSES };

SHARED_ENUM(thread_class);

struct state_time {
	__u64 time_ns;
	__u64 count;
};

/* Time of the threads of one CPU, role and class, of periods that have ended. */
struct thread_time {
	struct state_time states[STATES];
	__u64 user_ns;
	__u64 system_ns;
	__u64 unused[6];
};

MAPPED_ARRAY_SIZED_AT_LOAD(thread_times, struct thread_time);

/* Time on the CPU after which user and system time are read. */
#define TICKS_EVERY_NS 1000000

/* A task at its last switch. Task storage puts 56 bytes into the first cache line. */
struct last_switch {
	__u64 run_delay;    /* time that it had waited for a CPU */
	__u64 switched_at;  /* 0: it was not watched */
	__u64 exec_runtime; /* time that it had been on a CPU, */
	__u64 throttled;    /* and that its run queue had been throttled */
	struct connection connection;
	__u32 pcount; /* times that it had run */
	__u16 cpu;
	__u8 state;
	__u8 is_known;
	__u64 ticks_at; /* exec_runtime at the last reading of utime and stime */
	__u64 utime;
	__u64 stime;
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

static __always_inline struct thread_time *times_of(__u32 role, struct last_switch *last)
{
	__u32 class = last->connection.socket ? WITH_CONNECTION : WITHOUT_CONNECTION;
	__u32 index = (bpf_get_smp_processor_id() * (slots - 1) + role - 1) * THREAD_CLASSES + class;

	return bpf_map_lookup_elem(&thread_times, &index);
}

static __always_inline void add_time(struct thread_time *times, __u32 state, __u64 time)
{
	/* For the verifier. */
	state %= STATES;
	barrier_var(state);
	times->states[state].time_ns += time;
	times->states[state].count++;
}

/* The time in which a run queue was throttled and had tasks: its group had used its quota. */
static __always_inline __u64 throttled_time(struct cfs_rq *queue)
{
	struct cfs_rq___pelt *pelt = (void *)queue;
	struct cfs_rq___task *task = (void *)queue;

	if (bpf_core_field_exists(queue->throttled_clock_self_time))
		return queue->throttled_clock_self_time;
	if (bpf_core_field_exists(pelt->throttled_clock_pelt_time))
		return pelt->throttled_clock_pelt_time;
	return bpf_core_field_exists(task->throttled_clock_task_time) ? task->throttled_clock_task_time : 0;
}

static __always_inline __u32 reason_of(__u32 state)
{
	if (state >= FILE_WAIT)
		return BLOCK_IO;
	if (state <= NETWORK_WAIT)
		return NETWORK;
	if (state <= NO_CONNECTION)
		return LOCK;
	return state == SLEEP_WAIT ? SLEEP : OTHER;
}

/* Adds user and system time. Reading them seldom keeps their cache line out of most switches. */
static __always_inline void add_ticks(struct task_struct *task, struct last_switch *last, struct thread_time *times)
{
	__u64 utime = task->utime, stime = task->stime;

	if (times) {
		times->user_ns += utime - last->utime;
		times->system_ns += stime - last->stime;
	}
	last->utime = utime;
	last->stime = stime;
	last->ticks_at = task->se.sum_exec_runtime;
}

/* Adds the time on the CPU since the last switch. sum_exec_runtime excludes what the hypervisor and
 * interrupts took, where the kernel accounts them. */
static __always_inline void add_run(struct task_struct *task, __u32 role, struct last_switch *last, __u64 now)
{
	__u64 exec_runtime = task->se.sum_exec_runtime, run = exec_runtime - last->exec_runtime, stolen;
	struct thread_time *times = times_of(role, last);

	last->exec_runtime = exec_runtime;
	if (!times)
		return;
	add_time(times, ON_CPU, run);
	if (exec_runtime - last->ticks_at >= TICKS_EVERY_NS)
		add_ticks(task, last, times);
	stolen = now - last->switched_at - run;
	if (last->state == ON_CPU && last->pcount == (__u32)task->sched_info.pcount && (__s64)stolen > 0)
		add_time(times, STOLEN, stolen);
}

/* Starts to measure a task: its earlier times do not count. */
static __always_inline void watch(struct task_struct *task, struct last_switch *last)
{
	last->exec_runtime = task->se.sum_exec_runtime;
	add_ticks(task, last, 0);
}

static __always_inline void switch_out(struct task_struct *task, bool preempt, __u64 now)
{
	__u32 role = role_of(task->tgid);
	struct switches *switches = switches_of(role);
	/* The rule of the kernel for voluntary switches (kernel/sched/core.c, __schedule). */
	bool voluntary = !preempt && is_blocking(task);
	struct cfs_rq *queue = task->se.cfs_rq;
	struct last_switch *last;
	__u32 state;

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
	state = voluntary ? state_of_blocked(task, &last->connection) : RUN_QUEUE;
	if (last->switched_at)
		add_run(task, role, last, now);
	else
		watch(task, last);
	last->run_delay = task->sched_info.run_delay;
	last->pcount = task->sched_info.pcount;
	last->is_known = 1;
	last->switched_at = now;
	last->state = state;
	last->cpu = bpf_get_smp_processor_id();
	last->throttled = throttled_time(queue);
}

/* Adds the time off the CPU since the last switch: blocked, and the wait after it. */
static __always_inline void add_off_cpu(struct task_struct *task, __u32 role, struct last_switch *last, __u64 now,
                                        __u64 wait)
{
	__u64 off_cpu = now - last->switched_at, blocked, throttled = 0;
	struct thread_time *times = times_of(role, last);
	struct cfs_rq *queue = task->se.cfs_rq;
	__u32 state = last->state;

	if (!times)
		return;
	if (state == RUN_QUEUE)
		wait = off_cpu;
	blocked = off_cpu - wait;
	if ((__s64)blocked < 0)
		return;
	if (state != RUN_QUEUE)
		add_time(times, state, blocked);
	if (last->cpu == (__u16)bpf_get_smp_processor_id())
		throttled = throttled_time(queue) - last->throttled;
	if (throttled > wait)
		throttled = wait;
	if (throttled)
		add_time(times, THROTTLED, throttled);
	if (wait > throttled)
		add_time(times, RUN_QUEUE, wait - throttled);
}

static __always_inline void switch_in(struct task_struct *task, __u64 now)
{
	__u32 role = role_of(task->tgid);
	/* The kernel adds the last part of the wait to run_delay just after this hook. */
	__u64 queued = task->sched_info.last_queued, run_delay = task->sched_info.run_delay;
	__u32 pcount = task->sched_info.pcount;
	__u64 last_part = queued ? now - queued : 0, wait, blocked;
	struct last_switch *last = last_switches_of(task, true);
	bool is_next;

	if (!last)
		return;
	/* The tracepoint is not called at every switch. If pcount shows that this program missed
	 * one, the wait before it is not counted. */
	is_next = last->is_known && last->pcount == pcount;
	wait = is_next ? run_delay + last_part - last->run_delay : last_part;
	last->run_delay = run_delay + last_part;
	last->pcount = pcount + (queued != 0);
	if (queued && (last->is_known || queued >= first_switch) && (__s64)wait >= 0)
		histogram_add(&waits, slots, role, wait);
	last->is_known = 1;
	if (!role) {
		last->switched_at = 0;
		return;
	}
	if (!last->switched_at) {
		watch(task, last);
	} else if (last->state != ON_CPU) {
		if (is_next)
			add_off_cpu(task, role, last, now, wait);
		blocked = now - wait - last->switched_at;
		if (last->state != RUN_QUEUE && (__s64)blocked >= 0)
			histogram_add(&off_cpu, (slots - 1) * REASONS, (role - 1) * REASONS + reason_of(last->state),
			              blocked);
	}
	last->switched_at = now;
	last->state = ON_CPU;
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
