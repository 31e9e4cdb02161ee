#!/usr/bin/env bash
# Runs a program as on several hosts: hosts_test.sh RANKS_A_HOST HOSTS MPIRUN PROGRAM [ARG...]
#
# Each host is a network namespace with a name of its own, so MPI sees machines that share no memory and talk over TCP.
# All of that lies in namespaces that vanish with this script: nothing of the machine's network is touched. Exits with 77
# if the system does not let us make them.
set -euo pipefail

if [[ -z ${BALLAST_IN_NAMESPACE:-} ]]; then
  command -v ip >/dev/null || { echo "skipped: there is no ip (iproute2)"; exit 77; }
  unshare --net --mount true 2>/dev/null || { echo "skipped: namespaces cannot be made here"; exit 77; }
  exec env BALLAST_IN_NAMESPACE=1 unshare --net --mount "$0" "$@"
fi

ranks=$1 hosts=$2 mpirun=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A container may let us make some of it and not the rest.
trap 'echo "skipped: hosts cannot be made here"; exit 77' ERR
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip link set lo up
ip link add bridge0 type bridge
ip link set bridge0 up
list=
for ((i = 1; i <= hosts; ++i)); do
  ip netns add "host$i"
  ip link add "to$i" type veth peer name eth0 netns "host$i"
  ip link set "to$i" master bridge0 up
  ip -n "host$i" addr add "10.77.0.$i/24" dev eth0
  ip -n "host$i" link set eth0 up
  ip -n "host$i" link set lo up
  list+=${list:+,}10.77.0.$i:$ranks
done

# What mpirun calls instead of ssh.
cat >"$folder/agent" <<'AGENT'
#!/usr/bin/env bash
host=host${1##*.}
shift
exec ip netns exec "$host" unshare --uts bash -c 'hostname "$0"; exec bash -c "$1"' "$host" "$*"
AGENT
chmod +x "$folder/agent"
"$folder/agent" 10.77.0.1 true
trap - ERR

"$folder/agent" 10.77.0.1 "$(printf '%q ' timeout 280 "$mpirun" --mca plm rsh --mca plm_rsh_agent "$folder/agent" \
  --mca btl self,vader,tcp --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
  --oversubscribe -n $((ranks * hosts)) --host "$list" "$@")"
