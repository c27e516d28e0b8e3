#!/usr/bin/env bash
# The built-in file server beside nginx (sendfile, WebDAV module), in turns within
# the same minutes: one file of 1 GiB down, and 1 GiB up in four files of 256 MiB
# less a little (a request of the bridge carries no more). One client, curl, over
# loopback; the bridge asks for its token, nginx for nothing. Prints the median
# MB/s of each and the ratio. Needs curl, nginx with its dav module and about
# 2.5 GiB of memory, or DIR=a folder on a disk.
#
#   ROUNDS=7 tests/bench/files.sh
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
rounds=${ROUNDS:-7}
nginx=$(command -v nginx || echo /usr/sbin/nginx)
[ -x "$nginx" ] || { echo "nginx is not here: apt-get install nginx-full" >&2; exit 1; }
make -C "$root" --no-print-directory build

place=${DIR:-/dev/shm}
[ -d "$place" ] || place=${TMPDIR:-/tmp}
work=$(mktemp -d "$place/a2mcp-bench.XXXXXX")
pids=()
cleanup() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; wait; rm -rf "$work"; }
trap cleanup EXIT
mkdir "$work/agent" "$work/served" "$work/body"
chmod 755 "$work"

# What comes back is compared once, so it must not be all zeros.
openssl enc -aes-128-ctr -K 0 -iv 0 -in /dev/zero 2>/dev/null | head -c 1073741824 >"$work/served/big" || true
piece=$((255 * 1024 * 1024 - 1048576))
head -c $piece "$work/served/big" >"$work/piece"

port=38472
cat >"$work/nginx.conf" <<END
daemon off; master_process on; worker_processes auto; pid $work/nginx.pid; error_log $work/nginx.err;
$([ "$(id -u)" -ne 0 ] || echo "user root;")
events { worker_connections 512; }
http {
  access_log off; sendfile on; tcp_nopush on; default_type application/octet-stream;
  client_max_body_size 2g; client_body_temp_path $work/body;
  proxy_temp_path $work/t1; fastcgi_temp_path $work/t2; uwsgi_temp_path $work/t3; scgi_temp_path $work/t4;
  server { listen 127.0.0.1:$port; root $work/served; location / { dav_methods PUT; create_full_put_path on; } }
}
END
"$nginx" -e "$work/nginx.err" -c "$work/nginx.conf" 2>"$work/nginx.out" &
pids+=($!)
echo '{"maxBody":267386880}' >"$work/agent/a2mcp.json"
chmod 600 "$work/agent/a2mcp.json"
"$root/bin/a2mcp" demo --json --agent-dir "$work/agent" >"$work/demo" 2>"$work/demo.err" &
pids+=($!)
for _ in $(seq 200); do [ -s "$work/demo" ] && break; sleep 0.05; done
field() { head -1 "$work/demo" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
url=$(field url) token=$(field token)
[ -n "$url" ] || { cat "$work/demo.err" >&2; exit 1; }
auth="Authorization: Bearer $token"
sid=$(curl -sS -D - -o /dev/null -H "$auth" -d '{"jsonrpc":"2.0","id":1,"method":"initialize"}' "$url" | tr -d '\r' | sed -n 's/^mcp-session-id: //Ip')
curl -sS -H "$auth" -H "mcp-session-id: $sid" "$url" -d '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"xfer_share","arguments":{"path":"'"$work/served"'"}}}' |
  grep -q '"isError":false' || { echo "the share did not open" >&2; exit 1; }
ours=${url}xfer theirs=http://127.0.0.1:$port

declare -A servers
servers[a2mcp]=$(pgrep -P "$(field pid)" | head -1)
servers[nginx]=$(pgrep -P "${pids[0]}" | tr '\n' ' ')
cpu() { # of the processes, in hundredths of a second
  local ticks=0 stat
  for p in $1; do
    read -ra stat <"/proc/$p/stat"
    ticks=$((ticks + stat[13] + stat[14]))
  done
  echo $ticks
}
timed() { # name direction bytes command...
  local name=$1 direction=$2 bytes=$3 from to busy
  shift 3
  busy=$(cpu "${servers[$name]}") from=$(date +%s%N)
  "$@" || { echo "$name $direction: $*" >&2; exit 1; }
  to=$(date +%s%N)
  echo "$name $direction $((bytes * 1000 / (to - from))) $(($(cpu "${servers[$name]}") - busy))" >>"$work/results"
}
down() { curl -sSf -o /dev/null -H "$auth" "$1/big"; }
up() {
  local each=()
  for i in 1 2 3 4; do each+=(-T "$work/piece" "$1/$2-$i"); done
  curl -sSf -o /dev/null -H "$auth" -H 'Expect:' "${each[@]}"
}

cmp <(curl -sSf -H "$auth" "$ours/big") "$work/served/big"
cmp <(curl -sSf "$theirs/big") "$work/served/big"
: >"$work/results"
for r in $(seq "$rounds"); do
  order=(a2mcp nginx)
  [ $((r % 2)) -eq 0 ] && order=(nginx a2mcp)
  for name in "${order[@]}"; do
    base=$theirs
    [ "$name" = nginx ] || base=$ours
    timed "$name" download 1073741824 down "$base"
    timed "$name" upload $((4 * piece)) up "$base" "$name-$r"
    cmp "$work/piece" "$work/served/$name-$r-4"
    rm -f "$work/served/$name-$r"-*
  done
done

median() { awk -v n="$1" -v d="$2" -v f="$3" '$1==n && $2==d {print $f}' "$work/results" | sort -n | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }
row() { printf '%-26s %8s %8s %6s\n' "$1" "$2" "$3" "$(awk -v a="$2" -v b="$3" 'BEGIN {printf "%.2f", b ? a/b : 0}')"; }
echo "median of $rounds rounds         a2mcp    nginx  ratio"
for d in download upload; do
  row "$d, MB/s" "$(median a2mcp $d 3)" "$(median nginx $d 3)"
  row "$d, server's CPU, ms" "$(median a2mcp $d 4)0" "$(median nginx $d 4)0"
done
[ -z "${SHOW:-}" ] || sort "$work/results"
