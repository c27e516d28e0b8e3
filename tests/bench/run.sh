#!/usr/bin/env bash
# tools/call of a trivial tool with the audit log on: the sidecar with its demo
# host beside the in-process design (baseline.ts on bun), in turns within the
# same minutes. Prints requests/s, p50 and p99 of every round's median and the
# ratios; then the figures of one process. Needs wrk, npm and a quiet machine.
#
#   ROUNDS=5 SECONDS_EACH=5 tests/bench/run.sh
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
rounds=${ROUNDS:-5}
each=${SECONDS_EACH:-5}
command -v wrk >/dev/null || { echo "wrk is not here: apt-get install wrk" >&2; exit 1; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/a2mcp/bun-1.4.4
[ -x "$cache/node_modules/.bin/bun" ] || npm install --prefix "$cache" --no-audit --no-fund --loglevel=error bun@1.4.4 >/dev/null
make -C "$root" --no-print-directory build

work=$(mktemp -d)
pids=()
cleanup() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; wait; rm -rf "$work"; }
trap cleanup EXIT

"$root/bin/a2mcp" demo --json --test-tools --agent-dir "$work/agent" >"$work/demo" 2>"$work/demo.err" &
pids+=($!)
token=0123456789abcdef0123456789abcdef0123456789a
"$cache/node_modules/.bin/bun" baseline.ts 38471 "$token" "$work/baseline.log" 2>"$work/bun.err" &
pids+=($!)
for _ in $(seq 100); do [ -s "$work/demo" ] && break; sleep 0.05; done
field() { head -1 "$work/demo" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
sleep 0.5

handshake() { # url token
  curl -sS -D - -o /dev/null -H "Authorization: Bearer $2" -d '{"jsonrpc":"2.0","id":1,"method":"initialize"}' "$1" |
    tr -d '\r' | sed -n 's/^mcp-session-id: //Ip'
}
url_a=$(field url) token_a=$(field token)
url_b=http://127.0.0.1:38471/ token_b=$token
sid_a=$(handshake "$url_a" "$token_a") sid_b=$(handshake "$url_b" "$token_b")
export BODY='{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}'

round() { # name url token sid connections
  TOKEN=$3 SID=$4 wrk -t1 -c"$5" -d"${each}s" -s call.lua "$2" | awk -v n="$1" -v c="$5" '/^RESULT/ {print n, c, $2, $3, $4, $5}'
}
: >"$work/results"
for _ in $(seq "$rounds"); do
  for c in 1 32; do
    round sidecar "$url_a" "$token_a" "$sid_a" $c >>"$work/results"
    round baseline "$url_b" "$token_b" "$sid_b" $c >>"$work/results"
  done
done

median() { awk -v n="$1" -v c="$2" -v f="$3" '$1==n && $2==c {print $f}' "$work/results" | sort -n | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }
printf '%-10s %5s %10s %10s %10s\n' design conns calls/s 'p50 µs' 'p99 µs'
for c in 1 32; do
  for n in sidecar baseline; do
    printf '%-10s %5d %10d %10d %10d\n' "$n" "$c" "$(median $n $c 3)" "$(median $n $c 4)" "$(median $n $c 5)"
  done
  awk -v a="$(median sidecar $c 3)" -v b="$(median baseline $c 3)" 'BEGIN {printf "%-10s %5s %9.1fx\n", "ratio", "", a/b}'
done
awk '{bad += $6} END {print "failed requests: " bad+0}' "$work/results"
sidecar=$(pgrep -P "$(field pid)" | head -1)
awk '/VmRSS/ {print "sidecar resident after the load: " int($2/1024) " MiB"}' "/proc/${sidecar:-self}/status"

cd "$root"
go test -run '^$' -bench . -benchmem ./audit ./hostrpc | grep -E '^(Benchmark|pkg)'
