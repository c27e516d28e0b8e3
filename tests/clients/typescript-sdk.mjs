// The TypeScript SDK v1 against the bridge: node typescript-sdk.mjs URL TOKEN.
// Ends with an assertion at the first thing that is wrong.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token] = process.argv.slice(2);
const connect = async () => {
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
  const client = new Client({ name: "a2mcp-test", version: "1" });
  await client.connect(transport);
  return { client, transport };
};

const { client, transport } = await connect();
assert.equal(transport.protocolVersion, "2025-11-25");
assert.deepEqual(client.getServerCapabilities(), { tools: {} });

const { tools } = await client.listTools(); // validates every schema: one bad root would lose the whole list
for (const name of ["read", "bash", "echo"]) assert.ok(tools.some(t => t.name === name), name);

const echo = await client.callTool({ name: "echo", arguments: { text: "h<i>&\u2028" } });
assert.deepEqual(echo, { content: [{ type: "text", text: "h<i>&\u2028" }], isError: false });

const image = await client.callTool({ name: "test_image_content" });
assert.equal(image.content[0].type, "image");
assert.ok(Buffer.from(image.content[0].data, "base64").length > 0);

assert.equal((await client.callTool({ name: "bash", arguments: { command: "exit 3" } })).isError, true);
assert.match((await client.callTool({ name: "xd://bash" })).content[0].text, /not exposed/);

const abort = new AbortController();
const never = client.callTool({ name: "never" }, undefined, { signal: abort.signal });
setTimeout(() => abort.abort(), 300);
await assert.rejects(never);
await client.ping();

// A session that has ended is 404, which this client hands to its user; a new
// client goes on.
await transport.terminateSession();
await assert.rejects(client.listTools());
const again = await connect();
assert.ok((await again.client.listTools()).tools.length > 0);
await again.transport.terminateSession();
await again.client.close();
await client.close();
await new Promise(done => setTimeout(done, 2000)); // the cancelled call ends within 2 s (M11)
process.exit(0);
