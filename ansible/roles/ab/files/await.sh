#!/bin/sh
# await.sh WORK SLICE_S [PID]: renews the lease every second while the playbook's process PID runs (if given), for SLICE_S seconds or
# until the experiment ends, and prints `exit STATUS`, `gone` (the experiment was killed) or its last message.
work=$1 slice=$2 playbook=${3-}
alive() {
    kill -0 "$1" 2>/dev/null
}
while :; do
    # Ansible's workers keep running when the playbook is killed.
    [ -z "$playbook" ] || alive "$playbook" || exit 1
    # The pid file appears when the plan has been written. A process that ends writes `exit` first.
    pid=$(cat "$work/pid" 2>/dev/null) || pid=
    # Open for both: no reader is waited for.
    [ -z "$pid" ] || echo 1<>"$work/lease"
    if [ -n "$pid" ] && ! alive "$pid" && [ ! -e "$work/exit" ]; then
        echo gone
        exit
    fi
    if [ -e "$work/exit" ]; then
        echo "exit $(cat "$work/exit")"
        exit
    fi
    slice=$((slice - 1))
    [ "$slice" -gt 0 ] || break
    sleep 1
done
tail -n 1 "$work/stderr" 2>/dev/null || true
