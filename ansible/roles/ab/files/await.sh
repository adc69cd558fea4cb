#!/bin/sh
# await.sh WORK SLICE_S [PID]: says every second that the playbook (its process here, where it is known) is there, for a slice
# of time or until the end, and prints `exit STATUS`, `gone` (the experiment was killed) or its last word.
work=$1 slice=$2 playbook=${3-}
alive() {
    kill -0 "$1" 2>/dev/null
}
while :; do
    # Ansible's workers outlive a playbook that is killed
    [ -z "$playbook" ] || alive "$playbook" || exit 1
    touch "$work/heartbeat"
    # a moment passes before there is a process id, in the file too; whoever ends writes `exit` first
    pid=$(cat "$work/pid" 2>/dev/null) || pid=
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
tail -n 1 "$work/said" 2>/dev/null || true
