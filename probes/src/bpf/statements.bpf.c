/* Statement latency inside a MySQL or MariaDB server, by command. The idea is that of bcc's dbslower.
 *
 * Hooks: entry and return of the server's dispatch_command, which handles one command of the protocol from the packet
 * to the last byte of its answer. Programs on user functions may be preempted, so counters are added to atomically. */
#include "loadprint.bpf.h"

#define SLOTS 16 /* of a role: commands that are told apart, the last one all others */

/* The slot of each command (enum_server_command). */
const volatile __u8 slot_of[256];
const volatile __u32 roles_named = 1;

/* roles_named * SLOTS for each CPU; user space sets the number. */
HISTOGRAMS(statement_time);

/* 1 for a command that a role's server has had. */
struct happened {
	__u8 slot[SLOTS];
};

MAPPED(happened, struct happened);

ROLES();

/* The command that a thread is in. */
struct under_way {
	__u64 began;
	__u32 slot;
};

OF_TASKS(under_way, struct under_way);

static __always_inline int begin(__u64 number)
{
	struct under_way *command = under_way_of(current_task(), true);

	if (!command)
		return 0;
	command->slot = slot_of[number & 255];
	command->began = bpf_ktime_get_ns();
	return 0;
}

/* bool dispatch_command(THD *, const COM_DATA *, enum_server_command) */
COUNTED(third_argument);

SEC("uprobe")
int third_argument(struct pt_regs *regs)
{
	count_third_argument();
	return begin(PT_REGS_PARM3(regs));
}

/* dispatch_command(enum_server_command, THD *, char *packet, unsigned length, ...) */
COUNTED(first_argument);

SEC("uprobe")
int first_argument(struct pt_regs *regs)
{
	count_first_argument();
	return begin(PT_REGS_PARM1(regs));
}

COUNTED(returned);

SEC("uretprobe")
int returned(struct pt_regs *regs)
{
	count_returned();
	struct under_way *command = under_way_of(current_task(), false);
	__u32 role = role_of(bpf_get_current_pid_tgid() >> 32), slot;
	struct happened *seen;
	__u64 began;

	/* 0: it was under way when the program was attached. */
	if (!command || !command->began)
		return 0;
	began = command->began;
	command->began = 0;
	if (!role || role > roles_named)
		return 0;
	role--;
	slot = command->slot % SLOTS;
	seen = bpf_map_lookup_elem(&happened, &role);
	if (seen && !seen->slot[slot])
		seen->slot[slot] = 1;
	histogram_add_atomic(&statement_time, roles_named * SLOTS, role * SLOTS + slot, bpf_ktime_get_ns() - began);
	return 0;
}
