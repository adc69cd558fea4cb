/* For a test: a program that the verifier refuses. */
#include "loadprint.bpf.h"

HISTOGRAMS(never);

SEC("tp_btf/sched_switch")
int BPF_PROG(broken)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct histogram *histogram = bpf_map_lookup_elem(&never, &cpu);

	/* The pointer can be null. */
	histogram->sum++;
	return 0;
}
