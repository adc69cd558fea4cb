/* Measures statement latency in a MySQL or MariaDB server by command; the method of bcc's dbslower.
 *
 * Hooks: entry and return of the server's dispatch_command, which handles one command of the
 * protocol, from the packet to the last byte of its answer. Programs on user functions can be
 * preempted, so they add to counters atomically. */
#include "loadprint.bpf.h"

/* Slots of a role: one for each command that has a row, and the last one for all others. */
enum limits { SLOTS = 16 };

SHARED_ENUM(limits);

/* The slot of each command (enum_server_command). */
const volatile __u8 slot_of[256];
const volatile __u32 role_count = 1;

/* role_count * SLOTS for each CPU. */
HISTOGRAMS(statement_time);

/* By role: 1 for each slot that has a value. */
struct seen_commands {
	__u8 slot[SLOTS];
};

MAPPED_ARRAY_SIZED_AT_LOAD(seen_commands, struct seen_commands);

ROLES();

/* The command that a thread executes. */
struct command {
	__u64 start;
	__u32 slot;
};

TASK_STORAGE(commands, struct command);

static __always_inline int begin(__u64 number)
{
	struct command *command = commands_of(current_task(), true);

	if (!command)
		return 0;
	command->slot = slot_of[number & 255];
	command->start = bpf_ktime_get_ns();
	return 0;
}

/* bool dispatch_command(THD *, const COM_DATA *, enum_server_command) */
CALL_COUNTER(third_argument);

SEC("uprobe")
int third_argument(struct pt_regs *regs)
{
	count_third_argument();
	return begin(PT_REGS_PARM3(regs));
}

/* dispatch_command(enum_server_command, THD *, char *packet, unsigned length, ...) */
CALL_COUNTER(first_argument);

SEC("uprobe")
int first_argument(struct pt_regs *regs)
{
	count_first_argument();
	return begin(PT_REGS_PARM1(regs));
}

CALL_COUNTER(returned);

SEC("uretprobe")
int returned(struct pt_regs *regs)
{
	count_returned();
	struct command *command = commands_of(current_task(), false);
	__u32 role = role_of(bpf_get_current_pid_tgid() >> 32), slot;
	struct seen_commands *seen;
	__u64 start;

	/* 0: the command started before the program was attached. */
	if (!command || !command->start)
		return 0;
	start = command->start;
	command->start = 0;
	if (!role || role > role_count)
		return 0;
	role--;
	slot = command->slot % SLOTS;
	seen = bpf_map_lookup_elem(&seen_commands, &role);
	if (seen && !seen->slot[slot])
		seen->slot[slot] = 1;
	histogram_add_atomic(&statement_time, role_count * SLOTS, role * SLOTS + slot, bpf_ktime_get_ns() - start);
	return 0;
}
