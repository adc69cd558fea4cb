#!/bin/sh
# detach.sh WORK LEASE_S COMMAND…: runs a command that is independent of the end of the SSH session and the playbook.
# WORK/stdout and WORK/stderr contain its output, WORK/exit its exit status after its end.
work=$1 lease=$2
shift 2
echo $$ >"$work/pid"
"$@" </dev/null >"$work/stdout" 2>"$work/stderr"
status=$?
echo "$status" >"$work/exit.new"
mv "$work/exit.new" "$work/exit"
# Without a heartbeat no playbook reads these files; the run directory has the results. Keep those of a failed revert.
if [ "$status" != 2 ] && [ -z "$(find "$work/heartbeat" -newermt "-$lease seconds" 2>/dev/null)" ]; then
    rm -rf "$work"
fi
