#!/usr/bin/env bash
# The real host: omp and bun from npm, pinned, installed once outside the
# checkout. Type-checks the extension against omp's own types, runs its unit
# tests, then drives omp in all its modes. Needs Go, npm, tmux.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
packages=(bun@1.4.4 @oh-my-pi/pi-coding-agent@18.2.3 typescript@5.9.3 @types/bun@1.3.14)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/a2mcp/host-$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-16)
command -v tmux >/dev/null || { apt-get update -qq && apt-get install -y -qq tmux >/dev/null; }
if [ ! -e "$cache/done" ]; then
  rm -rf "$cache"
  mkdir -p "$cache"
  (cd "$cache" && npm install --prefix . --no-audit --no-fund --loglevel=error "${packages[@]}" >install.log 2>&1) || { cat "$cache/install.log"; exit 1; }
  touch "$cache/done"
fi
modules=$cache/node_modules
sed "s|CACHE|$cache|g; s|ROOT|$root|g" tsconfig.in >"$cache/tsconfig.json"
"$modules/.bin/tsc" -p "$cache/tsconfig.json"
(cd "$root/hostrpc/extension" && "$modules/.bin/bun" test --timeout 20000)
make -C "$root" --no-print-directory build
go vet ./...
A2MCP="$root/bin/a2mcp" A2MCP_OMP="$modules" go test -count=1 -timeout 20m "$@" ./...
