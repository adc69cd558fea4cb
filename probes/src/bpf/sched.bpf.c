/* Measures run-queue latency and off-CPU time by reason, and counts switches and migrations; the
 * methods of bcc's runqlat, offcputime and cpudist.
 *
 * Hooks: sched_switch, sched_migrate_task and sock_send_length. The program stores no time of a wakeup
 * and, except for sampled exchanges, reads no clock. It uses the clock of the run queue (struct rq),
 * which the scheduler updates at every switch, and the waiting time of each task, which the scheduler
 * adds up for /proc/PID/schedstat (struct sched_info). A wait is the increase of that sum between two
 * switches of a task: the kernel's own value, exact to the nanosecond, also when a waiting task
 * migrates to another CPU. Off-CPU time is the rest of the time between the two switches. As in
 * schedstat, a task that is preempted after it sets its state to sleeping and before it sleeps has no
 * wait. */
#include "thread_state.bpf.h"

/* Why a task is off the CPU. */
enum reason { BLOCK_IO, LOCK, NETWORK, SLEEP, OTHER, REASONS };

SHARED_ENUM(reason);

/* Slots of a CPU: one for each role, the first for processes without a role. */
const volatile __u32 slots = 1;

/* Whether a probe reads the histograms; the verifier removes their code otherwise. */
const volatile __u32 has_histograms;

/* How many times the programs were attached: what was stored of a task before the last time says nothing of
 * the time since. */
__u8 opening;

ROLES();

/* Uses role_of. */
#include "exchange.bpf.h"

/* One cache line for each CPU and role. */
struct switches {
	__u64 voluntary;
	__u64 involuntary;
	__u64 migrations;
	__u64 queue;           /* the run queue of the last task, by its address, */
	__u64 throttled;       /* how long it had been throttled, */
	__u64 throttle_length; /* and its last throttling, */
	__u64 throttle_end;    /* which ended just before a task got the CPU */
};

/* Threads that serve a connection, and those that do not. */
enum thread_class { WITHOUT_CONNECTION, WITH_CONNECTION, THREAD_CLASSES };

SHARED_ENUM(thread_class);

struct state_time {
	__u64 time_ns;
	__u64 count;
};

/* Time of the threads of one CPU, role and class, of periods that have ended; nine cache lines. */
struct thread_time {
	struct state_time states[STATES];
	__u64 user_ns;
	__u64 system_ns;
};

/* What is counted for the tasks of one role on one CPU: one map, because each access to a map is
 * code, and code that is not in the cache is most of the cost of these programs. */
struct counts {
	struct switches switches;
	struct thread_time times[THREAD_CLASSES];
	struct histogram waits;
	struct histogram off_cpu[REASONS];
};

MAPPED_ARRAY_SIZED_AT_LOAD(counts, struct counts);

/* User and system time are read when the time on the CPU enters the next 2^TICKS_SHIFT ns. */
#define TICKS_SHIFT 20

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
	__u8 opening; /* in which it was seen; 0: never */
	__u64 utime;  /* at their last reading */
	__u64 stime;
};

TASK_STORAGE(last_switches, struct last_switch);

/* The time of the first switch; a wait that started earlier is not counted. */
__u64 first_switch;

static __always_inline __u32 task_state(struct task_struct *task)
{
	struct task_struct___state *before = (void *)task;

	return bpf_core_field_exists(task->__state) ? task->__state : before->state;
}

static __always_inline struct counts *counts_of(__u32 cpu, __u32 role)
{
	__u32 index = cpu * slots + role;

	return bpf_map_lookup_elem(&counts, &index);
}

static __always_inline struct thread_time *times_of(struct counts *counts, struct last_switch *last)
{
	return &counts->times[last->connection.socket ? WITH_CONNECTION : WITHOUT_CONNECTION];
}

static __always_inline void add_time(struct thread_time *times, __u32 state, __u64 time)
{
	/* For the verifier. */
	barrier_var(state);
	if (state >= STATES)
		return;
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
	if (state >= FAULT_WAIT)
		return BLOCK_IO;
	if (state <= NETWORK_WAIT)
		return NETWORK;
	if (state <= NO_CONNECTION)
		return LOCK;
	return state == SLEEP_WAIT ? SLEEP : OTHER;
}

/* What a thread of a load does between two operations; a thread of a server waits for another one. */
static __always_inline bool is_pause(__u32 state)
{
	return state >= LOCK_WAIT && state <= SLEEP_WAIT;
}

/* Adds user and system time. Reading them seldom keeps their cache line out of most switches; at its
 * end a thread may have run for less. */
static __always_inline void add_ticks(struct task_struct *task, struct last_switch *last, struct thread_time *times)
{
	__u64 utime = task->utime, stime = task->stime;

	if (times) {
		times->user_ns += utime - last->utime;
		times->system_ns += stime - last->stime;
	}
	last->utime = utime;
	last->stime = stime;
}

/* Adds the time on the CPU since the last switch. sum_exec_runtime excludes what the hypervisor and
 * interrupts took, where the kernel accounts them. */
static __always_inline void add_run(struct task_struct *task, struct counts *counts, struct last_switch *last,
                                    __u64 now)
{
	__u64 exec_runtime = task->se.sum_exec_runtime, before = last->exec_runtime, run = exec_runtime - before;
	struct thread_time *times = times_of(counts, last);
	__u64 stolen = now - last->switched_at - run;

	last->exec_runtime = exec_runtime;
	add_time(times, ON_CPU, run);
	if ((exec_runtime ^ before) >> TICKS_SHIFT || task->flags & PF_EXITING)
		add_ticks(task, last, times);
	if (last->state == ON_CPU && last->pcount == (__u32)task->sched_info.pcount && (__s64)stolen > 0)
		add_time(times, STOLEN, stolen);
}

/* Starts to measure a task: its earlier times do not count. */
static __always_inline void watch(struct task_struct *task, struct last_switch *last)
{
	last->exec_runtime = task->se.sum_exec_runtime;
	add_ticks(task, last, 0);
}

/* Whether a task was seen since the programs were attached. Of one that was not, nothing is known. */
static __always_inline bool forget_earlier(struct last_switch *last)
{
	if (last->opening == opening)
		return true;
	last->switched_at = 0;
	return false;
}

/* Not inlined, so that each function needs little stack: from 64 bytes the kernel gives a program a
 * stack that is not in the cache. */
static __noinline void switch_out(struct task_struct *task, bool preempt, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id(), role = role_of(task->tgid), state = RUN_QUEUE;
	struct counts *counts = counts_of(cpu, role);
	__u32 blocking = task_state(task);
	/* The rule of the kernel for voluntary switches (kernel/sched/core.c, __schedule). */
	bool voluntary = !preempt && blocking;
	struct last_switch *last;

	if (!counts)
		return;
	if (voluntary)
		counts->switches.voluntary++;
	else
		counts->switches.involuntary++;
	if (!role)
		return;
	last = last_switches_of(task, true);
	if (!last)
		return;
	forget_earlier(last);
	if (voluntary)
		state = state_of_blocked(task, &last->connection, blocking);
	if (state == CLIENT_WAIT && is_followed(task->pid))
		exchange_waits(task->pid, now);
	if (last->switched_at)
		add_run(task, counts, last, now);
	else
		watch(task, last);
	last->run_delay = task->sched_info.run_delay;
	last->pcount = task->sched_info.pcount;
	last->opening = opening;
	last->switched_at = now;
	last->state = state;
	last->cpu = cpu;
	last->throttled = throttled_time(task->se.cfs_rq);
}

/* How long the task's run queue has been throttled. The increase since the last task of the role on this
 * CPU is a throttling that ended just now: this task is the first to run after it. */
static __always_inline __u64 watch_throttling(struct switches *cpu, struct cfs_rq *queue, __u64 now)
{
	__u64 throttled = throttled_time(queue);

	if (cpu->queue != (__u64)queue) {
		cpu->queue = (__u64)queue;
		cpu->throttle_end = 0;
	} else if (cpu->throttled != throttled) {
		cpu->throttle_length = throttled - cpu->throttled;
		cpu->throttle_end = now;
	}
	cpu->throttled = throttled;
	return throttled;
}

/* The part of the last throttling of a CPU that is after `begin`. */
static __always_inline __u64 throttled_since(struct switches *cpu, __u64 begin)
{
	__u64 from = cpu->throttle_end - cpu->throttle_length;

	if (from < begin)
		from = begin;
	return cpu->throttle_end > from ? cpu->throttle_end - from : 0;
}

/* Adds the time off the CPU since the last switch: blocked, and the wait after it. A task that waits on
 * another CPU than before has the throttling of both. */
static __always_inline void add_off_cpu(struct counts *counts, struct last_switch *last, __u32 role, __u64 now,
                                        __u64 wait, __u64 queue_throttled)
{
	__u64 off_cpu = now - last->switched_at, blocked, throttled;
	struct thread_time *times = times_of(counts, last);
	__u32 state = last->state;
	struct counts *before;

	if (state == RUN_QUEUE)
		wait = off_cpu;
	blocked = off_cpu - wait;
	if ((__s64)blocked < 0)
		return;
	if (state != RUN_QUEUE)
		add_time(times, state, blocked);
	if (last->cpu == (__u16)bpf_get_smp_processor_id()) {
		throttled = queue_throttled - last->throttled;
	} else {
		throttled = throttled_since(&counts->switches, now - wait);
		before = state == RUN_QUEUE ? counts_of(last->cpu, role) : 0;
		if (before)
			throttled += throttled_since(&before->switches, now - wait);
	}
	if (throttled > wait)
		throttled = wait;
	if (throttled)
		add_time(times, THROTTLED, throttled);
	if (wait > throttled)
		add_time(times, is_pause(state) ? PAUSE_QUEUE : RUN_QUEUE, wait - throttled);
}

static __noinline void switch_in(struct task_struct *task, __u64 now)
{
	__u32 role = role_of(task->tgid), pcount;
	struct counts *counts = counts_of(bpf_get_smp_processor_id(), role);
	__u64 queued, run_delay, last_part, wait, blocked, throttled;
	struct last_switch *last;
	bool is_known, is_next;

	if (!role && !has_histograms)
		return;
	last = last_switches_of(task, true);
	if (!counts || !last)
		return;
	is_known = forget_earlier(last);
	/* The kernel adds the last part of the wait to run_delay just after this hook. */
	queued = task->sched_info.last_queued;
	last_part = queued ? now - queued : 0;
	run_delay = task->sched_info.run_delay;
	/* The tracepoint is not called at every switch. If pcount shows that this program missed
	 * one, the wait before it is not counted. */
	pcount = task->sched_info.pcount;
	is_next = is_known && last->pcount == pcount;
	wait = is_next ? run_delay + last_part - last->run_delay : last_part;
	last->run_delay = run_delay + last_part;
	last->pcount = pcount + (queued != 0);
	if (!is_known) {
		last->opening = opening;
		if (!first_switch)
			first_switch = now;
		if (queued < first_switch)
			queued = 0;
	}
	if (has_histograms && queued && (__s64)wait >= 0)
		histogram_count(&counts->waits, wait);
	if (!role) {
		last->switched_at = 0;
		return;
	}
	if (is_followed(task->pid))
		exchange_runs(task->pid, now, is_next ? wait : last_part);
	throttled = watch_throttling(&counts->switches, task->se.cfs_rq, now);
	if (!last->switched_at) {
		watch(task, last);
	} else if (last->state != ON_CPU && is_next) {
		add_off_cpu(counts, last, role, now, wait, throttled);
		blocked = now - wait - last->switched_at;
		if (has_histograms && last->state != RUN_QUEUE && (__s64)blocked >= 0)
			histogram_count(&counts->off_cpu[reason_of(last->state)], blocked);
	}
	last->switched_at = now;
	last->state = ON_CPU;
}

/* For a test: the program ignores one switch in this many, 0: none. */
const volatile __u32 lose_one_in;

CALL_COUNTER(sched_switch);

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	count_sched_switch();
	/* Every task has a fair run queue of its CPU, regardless of its policy; that leads to the run
	 * queue of the CPU. */
	__u64 now = next->se.cfs_rq->rq->clock;

	if (lose_one_in && bpf_get_prandom_u32() % lose_one_in == 0)
		return 0;
	/* 0 is the idle task of every CPU. */
	if (prev->pid)
		switch_out(prev, preempt, now);
	if (next->pid)
		switch_in(next, now);
	return 0;
}

CALL_COUNTER(sched_migrate_task);

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task)
{
	struct counts *counts;

	count_sched_migrate_task();
	counts = counts_of(bpf_get_smp_processor_id(), role_of(task->tgid));
	if (counts)
		counts->switches.migrations++;
	return 0;
}

CALL_COUNTER(sock_send_length);

/* Since Linux 6.3 (6e6eda44b939). */
SEC("tp_btf/sock_send_length")
int BPF_PROG(sock_send_length, struct sock *sock)
{
	count_sock_send_length();
	follow_send(sock);
	return 0;
}
