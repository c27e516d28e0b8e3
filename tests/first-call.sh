#!/usr/bin/env bash
# A newcomer's way, timed: clone, `make demo`, paste what it prints, look at the
# record. Fails if any step does not do what the README says.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
demo=
end() {
  [ -z "$demo" ] || kill "$demo" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap end EXIT
git clone -q "$root" "$dir/a2mcp"
cd "$dir/a2mcp"
make --no-print-directory demo ARGS="--agent-dir $dir/agent" </dev/null >"$dir/screen" 2>&1 &
demo=$!
for _ in $(seq 600); do
  grep -q 'Calls show up here' "$dir/screen" && break
  kill -0 "$demo" 2>/dev/null || { cat "$dir/screen"; echo "make demo ended"; exit 1; }
  sleep 0.5
done
# The three lines that it prints to be pasted, pasted.
sed -n '/Call a tool with curl/,/Or add it/p' "$dir/screen" | grep -E '^(export|SID|curl)' >"$dir/paste"
answer=$(bash "$dir/paste")
case $answer in
  *"$(uname -s)"*'"isError":false'*) ;;
  *) echo "the pasted lines answered: $answer"; exit 1 ;;
esac
grep -q '"phase":"done","tool":"bash"' "$dir/agent/a2mcp.log"
bin/a2mcp audit --file "$dir/agent/a2mcp.log" | grep -q 'bash'
echo "from clone to first call: $SECONDS s"
