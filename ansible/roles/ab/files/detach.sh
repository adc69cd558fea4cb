#!/bin/sh
# detach.sh WORK LEASE_S COMMAND…: runs a command in a session of its own, so that neither the end of an SSH session nor of a
# playbook ends it. WORK/shown and WORK/said get what it prints, WORK/exit its exit status when it has ended.
work=$1 lease=$2
shift 2
echo $$ >"$work/pid"
"$@" </dev/null >"$work/shown" 2>"$work/said"
status=$?
echo "$status" >"$work/exit.new"
mv "$work/exit.new" "$work/exit"
# Nobody comes for it any more: what is worth keeping lies in the run directory. A failed revert stays to be read.
if [ "$status" != 2 ] && [ -z "$(find "$work/heartbeat" -newermt "-$lease seconds" 2>/dev/null)" ]; then
    rm -rf "$work"
fi
