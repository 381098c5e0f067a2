#!/usr/bin/env bash
# Runs a command on the first of two hosts, hosta and hostb, which are namespaces of this host: each
# has its own name, network and shared memory. `mpiexec` in it calls this script instead of ssh.
set -euo pipefail

if [ -n "${TWO_HOSTS-}" ]; then
    pid=$(cat "$TWO_HOSTS/$1")
    shift
    exec nsenter -t "$pid" --net --uts --ipc --mount bash -c "$*"
fi

TWO_HOSTS=$(mktemp -d)
export TWO_HOSTS
trap 'kill $(cat "$TWO_HOSTS"/host?); rm -r "$TWO_HOSTS"' EXIT
printf '%s\n' '127.0.0.1 localhost' '10.77.0.1 hosta' '10.77.0.2 hostb' >"$TWO_HOSTS/names"
for host in hosta hostb; do
    unshare --net --uts --ipc --mount bash -c "
        hostname $host
        mount -t tmpfs tmpfs /dev/shm
        mount --bind '$TWO_HOSTS/names' /etc/hosts
        ip link set lo up
        echo \$\$ >'$TWO_HOSTS/$host'
        exec sleep 1000" &
    until [ -s "$TWO_HOSTS/$host" ]; do sleep 0.05; done
done
a=$(cat "$TWO_HOSTS/hosta") b=$(cat "$TWO_HOSTS/hostb")
ip link add link0 netns "$a" type veth peer name link0 netns "$b"
nsenter -t "$a" --net ip addr add 10.77.0.1/24 dev link0
nsenter -t "$b" --net ip addr add 10.77.0.2/24 dev link0
nsenter -t "$a" --net ip link set link0 up
nsenter -t "$b" --net ip link set link0 up
nsenter -t "$a" --net --uts --ipc --mount "$@"
