/* Shows whether task storage works: returns 1 if the running task gets a value. */
#include "loadprint.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} values SEC(".maps");

SEC("raw_tp")
int task_storage(void *context)
{
	return bpf_task_storage_get(&values, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE) != 0;
}
