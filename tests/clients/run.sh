#!/usr/bin/env bash
# Real clients and the conformance suites against `a2mcp demo`. Installs the
# pinned npm packages (npm ci would insist on an optional package that is not published)
# once, outside the checkout, and runs the Go tests of this
# module. Needs Go, npm, the npm registry and ssh.
set -euo pipefail
cd "$(dirname "$0")"
command -v ssh >/dev/null || { apt-get update -qq && apt-get install -y -qq openssh-client >/dev/null; }
root=$(cd ../.. && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/a2mcp/clients-$(sha256sum npm/package-lock.json | cut -c1-16)
if [ ! -e "$cache/done" ]; then
  rm -rf "$cache"
  mkdir -p "$cache"
  cp npm/package.json npm/package-lock.json "$cache"
  (cd "$cache" && npm install --no-save --no-audit --no-fund --loglevel=error >install.log 2>&1) || { cat "$cache/install.log"; exit 1; }
  touch "$cache/done"
fi
make -C "$root" --no-print-directory build
go vet ./...
python3 -c 'from mcp.client.streamable_http import streamable_http_client' 2>/dev/null ||
  echo "not run: the Python SDK's example (python3 has no module mcp)"
A2MCP="$root/bin/a2mcp" A2MCP_NPM="$cache/node_modules" go test -count=1 ./...
