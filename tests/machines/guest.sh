#!/bin/busybox sh
# shellcheck shell=dash disable=SC2154 # busybox; the variables of the kernel's command line
#
# The first process of the guest. Records known work, packs the recording with what the kernel itself counted
# onto the second disk, and switches the machine off. The kernel gives it the words of its command line that it
# does not know as variables: writes, pings, connections.

# Opens connections, each with a few bytes. A connection ends at the end of its input.
connect() {
    ip link set lo up
    while [ "$connections" -gt 0 ]; do
        nc -l -p 4444 >received &
        until grep -q ':115C [0-9A-F:]* 0A ' /proc/net/tcp /proc/net/tcp6; do :; done # 4444 listens
        echo data | nc 127.0.0.1 4444
        wait $!
        connections=$((connections - 1))
    done
}

if [ "$1" = connect ]; then
    connect
    exit
fi

/bin/busybox mkdir -p /bin
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir /run/work
cd /run/work || exit
ip link set lo up

# The disk with a serial number. New kernels probe controllers at the same time: the numbers can be swapped.
disk_of() {
    for block in /sys/block/nvme*; do
        [ "$(tr -d ' ' <"$block/device/serial")" != "$1" ] || basename "$block"
    done
}

is_asleep() {
    grep -q '^State:.S' "/proc/$1/status"
}

# What the kernel counts for the spinner, the interfaces and the CPUs.
witness() {
    for name in stat status schedstat; do cat "/proc/$spinner/$name" >"$1.$name"; done
    cat /proc/net/dev >"$1.net"
    cat /proc/stat >"$1.cpu"
}

# Processes that the recorder watches before their work begins.
mkfifo start-spinner start-pinger end
sh -c 'read -r _ <start-spinner
    i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done
    : >spinner.done
    read -r _ <end' &
spinner=$!
taskset -p 8 $spinner >/dev/null # CPU 3
sh -c 'read -r _ <start-pinger; exec ping -q -c "$pings" -s 1000 127.0.0.1' >ping.log &
pinger=$!
until is_asleep $spinner && is_asleep $pinger; do sleep 0.1; done

more="--with ebpf_syscalls,ebpf_syscall_latency,ebpf_sched,ebpf_block,ebpf_block_size,ebpf_irq,ebpf_tcp"
# shellcheck disable=SC2086 # two words
loadprint-collect probes $more --process spinner=$spinner --format json >probes.json
# shellcheck disable=SC2086
loadprint-collect record --out run --pid-file recorder.pid $more --process spinner=$spinner --process pinger=$pinger &
recorder=$!
until [ -e recorder.pid ]; do # its first tick is complete
    [ -e /proc/$recorder/exe ] || poweroff -f
    sleep 0.1
done
witness before

echo >start-spinner
echo >start-pinger
data=$(disk_of data)
echo "$data" >data
i=0
while [ $i -lt "$writes" ]; do
    dd if=/dev/zero of="/dev/$data" bs=4096 count=1 conv=notrunc,fsync 2>>dd.log
    i=$((i + 1))
done
unshare -n "$0" connect # in a separate network namespace, because the segments would count on `lo`
wait $pinger
until [ -e spinner.done ] && is_asleep $spinner; do sleep 0.1; done
kill -TERM $recorder # it reads all probes once more
wait $recorder
echo "recorder: exit status $?"
witness after

# Without type information of the kernel. The directory is hidden as in a container without /sys/kernel/btf.
mount -t tmpfs tmpfs /sys/kernel/btf
loadprint-collect probes --format json >probes-without-btf.json
loadprint-collect record --out run-without-btf --duration 1s
echo "recorder without BTF: exit status $?"

uname -r >release
tar -cf "/dev/$(disk_of results)" . && sync && echo "guest: finished"
poweroff -f
