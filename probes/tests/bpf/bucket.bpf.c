/* For a test: calculates the buckets of many values with the function that the programs use. */
#include "loadprint.bpf.h"

#define VALUES 1024

__u64 values[VALUES];
__u32 buckets[VALUES];

SEC("syscall")
int bucket(void *context)
{
	for (int i = 0; i < VALUES; i++)
		buckets[i] = histogram_bucket(values[i]);
	return 0;
}
