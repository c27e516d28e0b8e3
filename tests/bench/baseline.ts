// The design the sidecar replaced, for comparison: HTTP, tool and audit in the one
// thread of a Bun process. Records go through one serial queue of stat, append
// and chmod; a call waits for its start record before it runs and for its done
// record before it is answered.
//
//   bun baseline.ts PORT TOKEN LOG
import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import * as fs from "node:fs/promises";

const [port, token, log] = Bun.argv.slice(2);
const secret = Buffer.from(token);
const live = new Set<string>();

let tail = Promise.resolve();
const record = (entry: Record<string, unknown>) =>
  (tail = tail.then(async () => {
    const size = await fs.stat(log).then(s => s.size, () => 0);
    if (size > 512 * 1024) await fs.rename(log, `${log}.1`);
    await fs.appendFile(log, `${JSON.stringify({ ts: new Date().toISOString(), ...entry })}\n`, { mode: 0o600 });
    await fs.chmod(log, 0o600);
  }).catch(cause => console.error(cause)));

const folded = (value: unknown): unknown => {
  if (typeof value === "string" && value.length > 120)
    return `<len:${value.length},sha256:${createHash("sha256").update(value).digest("hex").slice(0, 8)}>`;
  if (Array.isArray(value)) return value.map(folded);
  if (typeof value === "object" && value) return Object.fromEntries(Object.entries(value).map(([key, v]) => [key, folded(v)]));
  return value;
};

const authorized = (request: Request) => {
  const [, given = ""] = /^bearer\s+(.+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
  const bytes = Buffer.from(given);
  return bytes.length === secret.length && timingSafeEqual(bytes, secret);
};

const answer = (id: unknown, member: object, status = 200, headers = {}) =>
  Response.json({ jsonrpc: "2.0", id, ...member }, { status, headers });
const refuse = (status: number, code: number, message: string, id: unknown = null) => answer(id, { error: { code, message } }, status);

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(port),
  maxRequestBodySize: 128 * 1024 * 1024,
  async fetch(request) {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    if (!authorized(request)) return refuse(401, -32000, "unauthorized");
    const message = await request.json().catch(() => undefined);
    if (message === undefined) return refuse(400, -32700, "parse error");
    if (message?.jsonrpc !== "2.0" || typeof message.method !== "string") return refuse(400, -32600, "invalid request");
    const { id = null, method, params } = message;
    if (method === "initialize") {
      const sid = randomUUID();
      live.add(sid);
      return answer(id, { result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "baseline", version: "0" } } }, 200, { "mcp-session-id": sid });
    }
    const sid = request.headers.get("mcp-session-id") ?? "";
    if (!live.has(sid)) return refuse(404, -32000, "unknown session", id);
    if (method !== "tools/call") return answer(id, { error: { code: -32601, message: "method not found" } });

    const entry = { id: randomUUID(), sid, tool: params?.name, args: folded(params?.arguments) };
    const began = performance.now();
    await record({ ...entry, phase: "start" });
    const result = { content: [{ type: "text", text: String(params?.arguments?.text ?? "") }], isError: false };
    await record({ ...entry, phase: "done", isError: false, ms: Math.round(performance.now() - began) });
    return answer(id, { result });
  },
});
