/* Follows one exchange at a time, a request and its answer, at both ends of its connection: the time
 * in the network, and the time in which the server works and the client does not wait.
 *
 * A thread of the load chooses its connection at random when it sends a request; the exchange after
 * this one is measured, because the server's thread is found when it sends the answer. Both ends are on
 * this host. Without a load on this host only the server's end is followed: its time after its last send.
 *
 * All times are of the run queue's clock, as the states of threads. A send has no such time: the
 * monotonic clock is read there, and corrected by the distance that the two clocks have at switches. */
#pragma once

#include "thread_state.bpf.h"

/* A request chooses its connection with a chance of 1 in CHOICE. An exchange that did not end
 * after STALE_NS is replaced: its other end is on another host, or it pauses. */
enum { CHOICE = 64, STALE_NS = 1000000000 };

/* The numbers of the roles `load` and `server`, 0: no such process is watched, and of the one whose
 * threads choose. */
const volatile __u32 server_role;
const volatile __u32 choosing_role;
const volatile __u32 load_role;

struct exchange_totals {
	__u64 exchanges;
	__u64 waiting_ns; /* the client waits for data */
	__u64 server_ns;  /* from the arrival of the request until the server waits for the next one */
	__u64 network_ns; /* the part of waiting_ns before the arrival, and after the server's last send */
	__u64 overlap_ns; /* the part of server_ns in which the client does not wait, or after the last send */
};

MAPPED_ARRAY(exchange_totals, struct exchange_totals, 1);

/* Whose exchange is followed. Every switch reads it: no other data that is written is in its cache line. */
struct followed {
	__u64 pair;   /* the same at both ends of a connection; 0: no exchange is followed */
	__u32 client; /* IDs of the threads */
	__u32 server;
};

struct followed followed __attribute__((aligned(64)));

/* The exchange; 0 is a time that is not known. */
struct exchange {
	__u64 chosen;   /* of the monotonic clock */
	__u64 distance; /* of the monotonic clock from that of the run queue; 0: not known yet */
	__u64 began;    /* the client's send returned */
	__u64 first_wait;
	__u64 waiting; /* since when the client waits */
	__u64 waited;
	__u64 client_woken;
	__u64 arrived; /* the request, at the server */
	__u64 server_woken;
	__u64 server_waits_since;
	__u64 sent; /* the server's last send returned */
	bool server_waits;
};
struct exchange exchange __attribute__((aligned(64)));

/* Equal at both ends: addresses and ports are exchanged there, and so are unix sockets. */
static __noinline __u64 pair_of(struct sock *sock)
{
	struct unix_sock *unix_sock = (void *)sock, *peer;
	__u16 family = BPF_CORE_READ(sock, __sk_common.skc_family);
	__u64 addresses, ports;

	if (family == AF_UNIX && bpf_core_field_exists(unix_sock->peer)) {
		/* The verifier allows no arithmetic with the address of `sock`, which is the peer of its peer. */
		peer = (void *)BPF_CORE_READ(unix_sock, peer);
		return (__u64)peer * (__u64)BPF_CORE_READ(peer, peer);
	}
	if (family != AF_INET && family != AF_INET6)
		return 0;
	/* An IPv6 socket has the address of IPv4 here, or a constant. */
	addresses = BPF_CORE_READ(sock, __sk_common.skc_daddr) ^ BPF_CORE_READ(sock, __sk_common.skc_rcv_saddr);
	ports = (__u64)BPF_CORE_READ(sock, __sk_common.skc_num) *
	        __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));
	return addresses << 32 | ports;
}

/* The current thread has sent something, which may be the answer on the connection that is followed. */
static __noinline void find_server(struct sock *sock)
{
	__u64 thread = bpf_get_current_pid_tgid();

	if (pair_of(sock) != followed.pair) {
		if (bpf_ktime_get_ns() - exchange.chosen > STALE_NS)
			followed.pair = 0;
		return;
	}
	/* Another program, such as a proxy, may be the other end. */
	if (role_of(thread >> 32) == server_role)
		followed.server = thread;
	else
		followed.pair = 0;
}

/* Chooses the connection on which the current thread has sent something. */
static __noinline void choose_exchange(struct sock *sock)
{
	__u64 thread = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	__u32 role = role_of(thread >> 32);

	if (!role || role != choosing_role || (followed.pair && now - exchange.chosen < STALE_NS))
		return;
	followed.pair = 0;
	exchange.chosen = now;
	exchange.distance = 0;
	followed.client = role == load_role ? (__u32)thread : 0;
	followed.server = role == load_role ? 0 : (__u32)thread;
	exchange.began = exchange.arrived = exchange.sent = 0;
	exchange.client_woken = exchange.server_woken = exchange.server_waits_since = 0;
	exchange.waiting = exchange.first_wait = 0;
	exchange.server_waits = false;
	followed.pair = pair_of(sock);
}

/* Adds the exchange, whose server worked until `end`, and ends it. */
static __noinline void count_exchange(__u64 end)
{
	__u64 network = 0, waited = exchange.waited, busy = end - exchange.arrived, worked, overlap = 0;
	__u32 key = 0;
	struct exchange_totals *totals = bpf_map_lookup_elem(&exchange_totals, &key);

	if (followed.client) {
		if (exchange.first_wait && exchange.arrived > exchange.first_wait)
			network = exchange.arrived - exchange.first_wait;
		if (exchange.sent > exchange.arrived && exchange.client_woken > exchange.sent)
			network += exchange.client_woken - exchange.sent;
		if (network > waited)
			network = waited;
		worked = waited - network;
	} else {
		waited = 0;
		worked = exchange.sent - exchange.arrived;
	}
	if (busy > worked)
		overlap = busy - worked;
	if (totals && (__s64)busy >= 0) {
		__sync_fetch_and_add(&totals->exchanges, 1);
		__sync_fetch_and_add(&totals->waiting_ns, waited);
		__sync_fetch_and_add(&totals->server_ns, busy);
		__sync_fetch_and_add(&totals->network_ns, network);
		__sync_fetch_and_add(&totals->overlap_ns, overlap);
	}
	followed.pair = 0;
}

/* The run queue's clock was read when the kernel began to switch. In an idle CPU of a virtual machine that
 * is 6 us ago, else less: the smallest distance is the best. */
static __always_inline void compare_clocks(__u64 now)
{
	__u64 distance = bpf_ktime_get_ns() - now;

	if (!exchange.distance || (__s64)(distance - exchange.distance) < 0)
		exchange.distance = distance;
}

static __noinline void exchange_waits(__u32 thread, __u64 now)
{
	compare_clocks(now);
	if (thread == followed.client) {
		exchange.waiting = now;
		if (!exchange.first_wait)
			exchange.first_wait = now;
		return;
	}
	exchange.server_waits = true;
	exchange.server_waits_since = now;
	if (!followed.client && exchange.arrived && exchange.sent > exchange.arrived)
		count_exchange(now);
}

/* Whether a thread is an end of the exchange that is followed. */
static __always_inline bool is_followed(__u32 thread)
{
	return followed.pair && (thread == followed.client || thread == followed.server);
}

/* A thread of the exchange runs again, after a wait for a CPU. Its wait for data ended when it became
 * runnable, as in its states: a wakeup may take long to reach another CPU. */
static __noinline void exchange_runs(__u32 thread, __u64 now, __u64 queued)
{
	__u64 woken = now - queued;

	compare_clocks(now);
	if (thread == followed.client) {
		/* It may also have waited for something else. */
		if (!exchange.waiting)
			return;
		exchange.waited += woken - exchange.waiting;
		exchange.waiting = 0;
		exchange.client_woken = woken;
	} else if (exchange.server_waits) {
		exchange.server_waits = false;
		exchange.server_woken = woken;
		if ((exchange.began || !followed.client) && !exchange.arrived)
			exchange.arrived = woken;
	}
}

/* The client has sent a request. The server may run before the send returns; if it had not waited yet, the
 * request arrives now. */
static __always_inline void begin_exchange(__u64 now)
{
	bool is_woken = exchange.server_woken > exchange.client_woken && exchange.server_woken > exchange.sent;

	exchange.began = now;
	exchange.waited = exchange.waiting = exchange.first_wait = 0;
	exchange.arrived = exchange.server_waits ? 0 : is_woken ? exchange.server_woken : now;
}

static __noinline void exchange_sends(__u32 thread)
{
	__u64 now = bpf_ktime_get_ns() - exchange.distance, arrived = exchange.arrived;

	if (!exchange.distance)
		return;
	if (thread == followed.server) {
		exchange.sent = now;
		return;
	}
	if (!followed.server)
		return;
	if (!exchange.began) {
		begin_exchange(now);
		return;
	}
	/* Without an answer this is more of the request. The server's send may not have returned yet. */
	if (!arrived || (exchange.sent < arrived && exchange.client_woken < arrived))
		return;
	count_exchange(exchange.server_waits_since > arrived ? exchange.server_waits_since : now);
}

/* Called when the current thread has sent something. */
static __always_inline void follow_send(struct sock *sock)
{
	__u32 thread = bpf_get_current_pid_tgid();

	if (is_followed(thread))
		exchange_sends(thread);
	else if (followed.pair && !followed.server)
		find_server(sock);
	else if (bpf_get_prandom_u32() % CHOICE == 0)
		choose_exchange(sock);
}
