#!/bin/sh
# detach.sh WORK LEASE_S COMMAND…: runs a command that is independent of the end of the SSH session and the playbook. Its input are
# WORK/planned.json, and then what await.sh writes into WORK/lease. WORK/stdout and WORK/stderr contain its output, WORK/exit its exit
# status after its end.
work=$1 lease=$2
shift 2
mkfifo -m 600 "$work/lease"
# Open for both, so that it has no end.
exec 3<>"$work/lease"
{
    timeout "$lease" cat "$work/planned.json" >&3
    echo $$ >"$work/pid"
} &
"$@" <&3 >"$work/stdout" 2>"$work/stderr"
status=$?
echo "$status" >"$work/exit.new"
mv "$work/exit.new" "$work/exit"
# Without a lease no playbook reads these files; the run directory has the results. Keep those of a failed revert.
if [ "$status" != 2 ] && [ -z "$(find "$work/lease" -newermt "-$lease seconds" 2>/dev/null)" ]; then
    rm -rf "$work"
fi
