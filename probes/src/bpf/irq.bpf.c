/* Measures time in hard and soft interrupts; the method of bcc's hardirqs and softirqs.
 *
 * Hooks: irq_handler_entry/exit and softirq_entry/exit. A hard interrupt can interrupt a soft one;
 * its time is then part of both, as in those tools. On a line that devices share, each device's
 * handler counts. */
#include "loadprint.bpf.h"

/* SOFTIRQS: vectors of include/linux/interrupt.h. GROUPS: of hard interrupt lines; 0 is for lines
 * without a group. Vectors and groups are the slots of the histograms. */
enum limits { SOFTIRQS = 10, GROUPS = 16, SLOTS = SOFTIRQS + GROUPS, LINES = 4096 };

SHARED_ENUM(limits);

HISTOGRAMS(irq_time);

/* The group of each interrupt line, by its number. User space writes it. */
struct line_groups {
	__u8 group[LINES];
};

MAP(line_groups, BPF_MAP_TYPE_ARRAY, __u32, struct line_groups, 1);

static __always_inline __u32 group_of(__u32 line)
{
	__u32 zero = 0;
	struct line_groups *groups = bpf_map_lookup_elem(&line_groups, &zero);

	if (!groups || line >= LINES)
		return 0;
	/* Keeps the comparison before the access, where the verifier uses it. */
	barrier_var(line);
	return groups->group[line % LINES] % GROUPS;
}

struct start_times {
	__u64 soft;
	__u64 hard;
};

MAP(start_times, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct start_times, 1);

static __always_inline struct start_times *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&start_times, &zero);
}

static __always_inline void add_time_since(__u64 *start, __u32 slot)
{
	/* 0: the interrupt started before the program was attached. */
	if (*start)
		histogram_add(&irq_time, SLOTS, slot, bpf_ktime_get_ns() - *start);
	*start = 0;
}

CALL_COUNTER(softirq_entry);

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry)
{
	count_softirq_entry();
	struct start_times *cpu = this_cpu();

	if (cpu)
		cpu->soft = bpf_ktime_get_ns();
	return 0;
}

CALL_COUNTER(softirq_exit);

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int vector)
{
	count_softirq_exit();
	struct start_times *cpu = this_cpu();

	if (cpu && vector < SOFTIRQS)
		add_time_since(&cpu->soft, vector);
	return 0;
}

CALL_COUNTER(irq_handler_entry);

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry)
{
	count_irq_handler_entry();
	struct start_times *cpu = this_cpu();

	if (cpu)
		cpu->hard = bpf_ktime_get_ns();
	return 0;
}

CALL_COUNTER(irq_handler_exit);

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit, int line)
{
	count_irq_handler_exit();
	struct start_times *cpu = this_cpu();

	if (cpu)
		add_time_since(&cpu->hard, SOFTIRQS + group_of(line));
	return 0;
}
