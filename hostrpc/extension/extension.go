// Package extension carries the host's half of the bridge for omp: TypeScript that omp loads as it
// is, without a build step. `a2mcp install` writes it out beside the binary.
//
// The types of the protocol in protocol.ts are made from package proto by this package's test.
package extension

import "embed"

// Files are the extension: its package.json and its modules. The sidecar's binary belongs in the same
// folder, under the name a2mcp (a2mcp.exe on Windows).
//
//go:embed package.json bridge.ts calls.ts cards.ts change.ts channel.ts denial.ts exclusive.ts host.ts index.ts
//go:embed inference.ts offline.ts operator.ts overrides.ts progress.ts protocol.ts redirects.ts sessions.ts
//go:embed sidecar.ts tripwire.ts
var Files embed.FS
