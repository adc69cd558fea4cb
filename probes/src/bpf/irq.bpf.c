/* Time in hard and soft interrupts. The idea is that of bcc's hardirqs and softirqs.
 *
 * Hooks: irq_handler_entry/exit and softirq_entry/exit. A soft interrupt may be interrupted by a hard one; its time
 * then holds the other's, as in those tools. Where devices share a line, each one's handler counts. */
#include "loadprint.bpf.h"

#define SOFTIRQS 10
#define GROUPS   16 /* of the lines of hard interrupts; 0 are those that have no group */
#define SLOTS    (SOFTIRQS + GROUPS)
#define LINES    4096

HISTOGRAMS(irq_time);

/* The group of each interrupt line, by its number: user space fills it in. */
struct groups {
	__u8 group[LINES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct groups);
} lines SEC(".maps");

static __always_inline __u32 group_of(__u32 line)
{
	__u32 zero = 0;
	struct groups *groups = bpf_map_lookup_elem(&lines, &zero);

	if (!groups || line >= LINES)
		return 0;
	/* The verifier does not see that comparison once the compiler has moved it. */
	barrier_var(line);
	return groups->group[line % LINES] % GROUPS;
}

struct started {
	__u64 soft;
	__u64 hard;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct started);
} started SEC(".maps");

static __always_inline struct started *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&started, &zero);
}

static __always_inline void ended(__u64 *began, __u32 slot)
{
	/* 0: it was under way when the program was attached. */
	if (*began)
		histogram_add(&irq_time, SLOTS, slot, bpf_ktime_get_ns() - *began);
	*began = 0;
}

COUNTED(softirq_entry);

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry)
{
	count_softirq_entry();
	struct started *cpu = this_cpu();

	if (cpu)
		cpu->soft = bpf_ktime_get_ns();
	return 0;
}

COUNTED(softirq_exit);

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int vector)
{
	count_softirq_exit();
	struct started *cpu = this_cpu();

	if (cpu && vector < SOFTIRQS)
		ended(&cpu->soft, vector);
	return 0;
}

COUNTED(irq_handler_entry);

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry)
{
	count_irq_handler_entry();
	struct started *cpu = this_cpu();

	if (cpu)
		cpu->hard = bpf_ktime_get_ns();
	return 0;
}

COUNTED(irq_handler_exit);

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit, int line)
{
	count_irq_handler_exit();
	struct started *cpu = this_cpu();

	if (cpu)
		ended(&cpu->hard, SOFTIRQS + group_of(line));
	return 0;
}
