/* Round-trip times, retransmits, and connections opened and closed, by port. The ideas are those of bcc's tcprtt,
 * tcpretrans and tcpstates.
 *
 * Hooks: tcp_probe (a segment came to an established connection), tcp_retransmit_skb, tcp_retransmit_synack,
 * inet_sock_set_state. All network namespaces of the host. Who listens is known from the moment it begins to; for those
 * who listened before, user space fills the table in. */
#include "loadprint.bpf.h"
#include <bpf/bpf_endian.h>

#define AF_INET         2
#define IPPROTO_TCP     6
#define TCP_ESTABLISHED 1 /* include/net/tcp_states.h */
#define TCP_LISTEN      10

#define PORTS      16  /* with 0: all other ports */
#define UNNUMBERED 255 /* somebody listens, but there are no numbers left */
#define SLOTS      (PORTS * 4)
enum { CONNECTED = 0, ACCEPTED = 1, LOOPBACK = 2 };

/* Sets of histograms, a power of two: as many as CPUs, but on large hosts several CPUs share one. */
const volatile __u32 sets = 1;

HISTOGRAMS(rtt);

struct counts {
	__u64 retransmits;
	__u64 opened;
	__u64 closed;
};

MAPPED_OF(counted, struct counts, SLOTS);

/* The number of each port that somebody listens on, by port; 0: nobody does. */
#define PORT_PAGE 4096
struct port_page {
	__u8 number[PORT_PAGE];
};

MAPPED_OF(numbers, struct port_page, 65536 / PORT_PAGE);

/* Which port has taken a number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PORTS);
	__type(key, __u32);
	__type(value, __u32);
} owners SEC(".maps");

/* For user space: the port of each number, 0 while it is free. */
MAPPED_OF(known, __u64, PORTS);

static __always_inline __u8 *number_of(__u16 port)
{
	__u32 page = port / PORT_PAGE;
	struct port_page *found = bpf_map_lookup_elem(&numbers, &page);

	return found ? &found->number[port % PORT_PAGE] : 0;
}

/* Somebody begins to listen: in the context of listen(2), of which two for one port at one time are not worth a lock.
 */
static __always_inline void listens(__u16 port)
{
	__u8 *number = number_of(port);
	__u32 candidate, key, owner = port;
	__u64 *place;

	if (!number || *number)
		return;
	for (candidate = 1; candidate < PORTS; candidate++) {
		/* A counter whose address is taken is one that the verifier cannot follow. */
		key = candidate;
		if (bpf_map_update_elem(&owners, &key, &owner, BPF_NOEXIST))
			continue;
		place = bpf_map_lookup_elem(&known, &key);
		if (place)
			*place = port;
		*number = candidate;
		return;
	}
	*number = UNNUMBERED;
}

static __always_inline bool is_loopback4(__be32 remote, __be32 local)
{
	return remote == local || (remote & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000);
}

/* 127.0.0.0/8, ::1, and any address of the host that is both ends'. */
static __always_inline bool is_loopback(const struct sock_common *common)
{
	const __be32 *remote = common->skc_v6_daddr.in6_u.u6_addr32;
	const __be32 *local = common->skc_v6_rcv_saddr.in6_u.u6_addr32;

	if (common->skc_family == AF_INET)
		return is_loopback4(common->skc_daddr, common->skc_rcv_saddr);
	if (remote[0] == 0 && remote[1] == 0) {
		if (remote[2] == bpf_htonl(0xffff))
			return is_loopback4(remote[3], local[3]);
		if (remote[2] == 0 && remote[3] == bpf_htonl(1))
			return true;
	}
	return remote[0] == local[0] && remote[1] == local[1] && remote[2] == local[2] && remote[3] == local[3];
}

/* The place of a connection: its side is "accepted" where somebody listens on its local port. */
static __always_inline __u32 slot_of(const struct sock_common *common, __u16 local)
{
	__u32 side = ACCEPTED, number = 0;
	__u8 *found = number_of(local);

	if (!found || !*found) {
		side = CONNECTED;
		found = number_of(bpf_ntohs(common->skc_dport));
	}
	if (found && *found < PORTS)
		number = *found;
	return number * 4 + side + (is_loopback(common) ? LOOPBACK : 0);
}

static __always_inline struct counts *counts_of(const struct sock_common *common, __u16 local)
{
	__u32 slot = slot_of(common, local);

	return bpf_map_lookup_elem(&counted, &slot);
}

COUNTED(tcp_probe);

SEC("tp_btf/tcp_probe")
int BPF_PROG(tcp_probe, struct sock *sk)
{
	count_tcp_probe();
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	__u32 set = bpf_get_smp_processor_id() & (sets - 1), srtt;

	if (!tcp)
		return 0;
	/* In eighths of a microsecond; 0 before the first answer. */
	srtt = tcp->srtt_us;
	if (srtt)
		histogram_add_shared(&rtt, set * SLOTS + slot_of(&sk->__sk_common, sk->__sk_common.skc_num),
		                     (__u64)srtt * 125);
	return 0;
}

COUNTED(tcp_retransmit_skb);

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(tcp_retransmit_skb, const struct sock *sk, const struct sk_buff *skb)
{
	count_tcp_retransmit_skb();
	struct counts *counts = counts_of(&sk->__sk_common, sk->__sk_common.skc_num);
	const struct tcp_skb_cb *control = (const void *)skb + bpf_core_field_offset(struct sk_buff, cb);

	/* One buffer may hold many segments; Tcp.RetransSegs counts each. */
	if (counts)
		__sync_fetch_and_add(&counts->retransmits, BPF_CORE_READ(control, tcp_gso_segs));
	return 0;
}

COUNTED(tcp_retransmit_synack);

SEC("tp_btf/tcp_retransmit_synack")
int BPF_PROG(tcp_retransmit_synack, const struct sock *sk, const struct request_sock *request)
{
	count_tcp_retransmit_synack();
	struct counts *counts = counts_of(&request->__req_common, request->__req_common.skc_num);

	if (counts)
		__sync_fetch_and_add(&counts->retransmits, 1);
	return 0;
}

COUNTED(inet_sock_set_state);

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(inet_sock_set_state, const struct sock *sk, int before, int after)
{
	count_inet_sock_set_state();
	struct counts *counts;
	__u16 local;

	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	/* skc_num is 0 when a connection was reset. */
	local = bpf_ntohs(BPF_CORE_READ((const struct inet_sock *)sk, inet_sport));
	if (after == TCP_LISTEN) {
		listens(sk->__sk_common.skc_num);
		return 0;
	}
	if (before != TCP_ESTABLISHED && after != TCP_ESTABLISHED)
		return 0;
	counts = counts_of(&sk->__sk_common, local);
	if (counts)
		__sync_fetch_and_add(after == TCP_ESTABLISHED ? &counts->opened : &counts->closed, 1);
	return 0;
}
