/* Measures TCP round-trip times and counts retransmits and connections opened and closed, by port;
 * the methods of bcc's tcprtt, tcpretrans and tcpstates.
 *
 * Hooks: tcp_probe (an established connection receives a segment), tcp_retransmit_skb,
 * tcp_retransmit_synack, inet_sock_set_state. They cover all network namespaces of the host. A port
 * gets its number when a socket starts to listen on it; user space numbers the ports of sockets
 * that listen already. */
#include "loadprint.bpf.h"
#include <bpf/bpf_endian.h>

#define IPPROTO_TCP     6
#define TCP_ESTABLISHED 1 /* include/net/tcp_states.h */
#define TCP_LISTEN      10

/* A bit each for the side and for the peer; CONNECTED and REMOTE are 0. */
enum slots_of_port { CONNECTED = 0, REMOTE = 0, ACCEPTED = 1, LOOPBACK = 2, SLOTS_OF_PORT = 4 };

SHARED_ENUM(slots_of_port);

/* PORTS includes number 0, all other ports. UNNUMBERED: a socket listens on the port, but all
 * numbers are in use. */
enum limits { PORTS = 16, SLOTS = PORTS * SLOTS_OF_PORT, PORT_PAGE = 4096, UNNUMBERED = 255 };

SHARED_ENUM(limits);

/* Sets of histograms, a power of two: one for each CPU, but on large hosts several CPUs share one. */
const volatile __u32 sets = 1;

HISTOGRAMS(rtt);

struct connection_counters {
	__u64 retransmits;
	__u64 opened;
	__u64 closed;
};

MAPPED_ARRAY(connection_counters, struct connection_counters, SLOTS);

struct port_page {
	__u8 number[PORT_PAGE];
};

/* The number of each port on which a socket listens, in pages; 0: none does. */
MAPPED_ARRAY(port_numbers, struct port_page, 65536 / PORT_PAGE);

/* The port of each number that is in use. */
MAP(number_owners, BPF_MAP_TYPE_HASH, __u32, __u32, PORTS);

/* For user space: the port of each number, 0 while the number is free. */
MAPPED_ARRAY(numbered_ports, __u64, PORTS);

static __always_inline __u8 *number_of(__u16 port)
{
	__u32 page = port / PORT_PAGE;
	struct port_page *entry = bpf_map_lookup_elem(&port_numbers, &page);

	return entry ? &entry->number[port % PORT_PAGE] : 0;
}

/* Gives a port its number when a socket starts to listen on it. Runs in the context of listen(2):
 * two calls for one port at the same time are too rare for a lock. */
static __always_inline void number_port(__u16 port)
{
	__u8 *number = number_of(port);
	__u32 candidate, key, owner = port;
	__u64 *numbered;

	if (!number || *number)
		return;
	for (candidate = 1; candidate < PORTS; candidate++) {
		/* The verifier loses track of a loop counter whose address is taken. */
		key = candidate;
		if (bpf_map_update_elem(&number_owners, &key, &owner, BPF_NOEXIST))
			continue;
		numbered = bpf_map_lookup_elem(&numbered_ports, &key);
		if (numbered)
			*numbered = port;
		*number = candidate;
		return;
	}
	*number = UNNUMBERED;
}

static __always_inline bool is_loopback4(__be32 remote, __be32 local)
{
	return remote == local || (remote & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000);
}

/* 127.0.0.0/8, ::1, and an address of the host that both ends have. */
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

/* The slot of a connection. Its side is ACCEPTED if a socket listens on its local port. */
static __always_inline __u32 slot_of(const struct sock_common *common, __u16 local)
{
	__u32 side = ACCEPTED, number = 0;
	__u8 *entry = number_of(local);

	if (!entry || !*entry) {
		side = CONNECTED;
		entry = number_of(bpf_ntohs(common->skc_dport));
	}
	if (entry && *entry < PORTS)
		number = *entry;
	return number * SLOTS_OF_PORT + side + (is_loopback(common) ? LOOPBACK : REMOTE);
}

static __always_inline struct connection_counters *counters_of(const struct sock_common *common, __u16 local)
{
	__u32 slot = slot_of(common, local);

	return bpf_map_lookup_elem(&connection_counters, &slot);
}

/* One segment in this many is measured, at random: segments alternate between the sides. */
enum { SEGMENTS = 4 };

CALL_COUNTER(tcp_probe);

SEC("tp_btf/tcp_probe")
int BPF_PROG(tcp_probe, struct sock *sk)
{
	count_tcp_probe();
	__u32 set = bpf_get_smp_processor_id() & (sets - 1), srtt;
	struct tcp_sock *tcp;

	if (bpf_get_prandom_u32() % SEGMENTS)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 0;
	/* In eighths of a microsecond; 0 before the first acknowledgement. */
	srtt = tcp->srtt_us;
	if (srtt)
		histogram_add_shared(&rtt, set * SLOTS + slot_of(&sk->__sk_common, sk->__sk_common.skc_num),
		                     (__u64)srtt * 125);
	return 0;
}

CALL_COUNTER(tcp_retransmit_skb);

SEC("tp_btf/tcp_retransmit_skb")
int tcp_retransmit_skb(__u64 *ctx)
{
	count_tcp_retransmit_skb();
	const struct sock *sk = (void *)ctx[0];
	const struct sk_buff *skb = (void *)ctx[1];
	struct connection_counters *counters = counters_of(&sk->__sk_common, sk->__sk_common.skc_num);
	const struct tcp_skb_cb *control = (const void *)skb + bpf_core_field_offset(struct sk_buff, cb);

	if (bpf_core_type_exists(btf_trace_tcp_retransmit_skb) && (int)ctx[2])
		return 0;
	/* A buffer can contain several segments; Tcp.RetransSegs counts each. */
	if (counters)
		__sync_fetch_and_add(&counters->retransmits, BPF_CORE_READ(control, tcp_gso_segs));
	return 0;
}

CALL_COUNTER(tcp_retransmit_synack);

SEC("tp_btf/tcp_retransmit_synack")
int BPF_PROG(tcp_retransmit_synack, const struct sock *sk, const struct request_sock *request)
{
	count_tcp_retransmit_synack();
	struct connection_counters *counters = counters_of(&request->__req_common, request->__req_common.skc_num);

	if (counters)
		__sync_fetch_and_add(&counters->retransmits, 1);
	return 0;
}

CALL_COUNTER(inet_sock_set_state);

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(inet_sock_set_state, const struct sock *sk, int before, int after)
{
	count_inet_sock_set_state();
	struct connection_counters *counters;
	__u16 local;

	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	/* skc_num is 0 after a reset. */
	local = bpf_ntohs(BPF_CORE_READ((const struct inet_sock *)sk, inet_sport));
	if (after == TCP_LISTEN) {
		number_port(sk->__sk_common.skc_num);
		return 0;
	}
	if (before != TCP_ESTABLISHED && after != TCP_ESTABLISHED)
		return 0;
	counters = counters_of(&sk->__sk_common, local);
	if (counters)
		__sync_fetch_and_add(after == TCP_ESTABLISHED ? &counters->opened : &counters->closed, 1);
	return 0;
}
