#!/usr/bin/env bash
# The file server against the programs that people move files with: curl, litmus, cadaver, rclone and
# Chromium. What is missing is installed where there is apt-get; a client that is still missing is a
# failure here. A2MCP_PICTURES=FOLDER keeps pictures of the listing.
set -euo pipefail
cd "$(dirname "$0")"
missing=()
for program in curl litmus cadaver rclone; do
  command -v "$program" >/dev/null || missing+=("$program")
done
for program in chromium chromium-browser google-chrome google-chrome-stable chrome; do
  command -v "$program" >/dev/null && browser=$program && break
done
[ -n "${browser:-}" ] || missing+=(chromium)
if [ ${#missing[@]} -gt 0 ] && command -v apt-get >/dev/null; then
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"; } >"$log" 2>&1 ||
    { cat "$log"; echo "installing ${missing[*]} did not work; install them and try again"; exit 1; }
fi
root=$(cd ../.. && pwd)
make -C "$root" --no-print-directory build
go vet ./...
A2MCP="$root/bin/a2mcp" go test -count=1 -timeout 20m "$@" .
