// node --import bearer.mjs …: adds "Authorization: Bearer $MCP_BEARER" to every
// request of the process, for a conformance suite that has no option for it. The
// suite sends through fetch, undici and node:http.
import { createRequire, syncBuiltinESMExports } from "node:module";
import http from "node:http";

const value = `Bearer ${process.env.MCP_BEARER}`;
const suite = createRequire(process.argv[1]);

const { getGlobalDispatcher, setGlobalDispatcher } = suite("undici");
const has = headers => Array.isArray(headers)
  ? headers.some((h, i) => (Array.isArray(h) ? h[0] : i % 2 ? "" : h)?.toString().toLowerCase() === "authorization")
  : Object.keys(headers ?? {}).some(k => k.toLowerCase() === "authorization");
setGlobalDispatcher(getGlobalDispatcher().compose(dispatch => (options, handler) => {
  let headers = options.headers;
  if (headers && !Array.isArray(headers) && typeof headers[Symbol.iterator] === "function") headers = [...headers].flat();
  if (!has(headers)) headers = Array.isArray(headers) ? [...headers, "authorization", value] : { ...headers, authorization: value };
  return dispatch({ ...options, headers }, handler);
}));

const { fetch } = globalThis;
globalThis.fetch = (input, init = {}) => {
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  if (!headers.has("authorization")) headers.set("authorization", value);
  return fetch(input, { ...init, headers });
};

const { request } = http;
http.request = (...args) => {
  const options = args.find(a => a && typeof a === "object" && !(a instanceof URL));
  if (options && !has(options.headers)) options.headers = { ...options.headers, Authorization: value };
  return request(...args);
};
syncBuiltinESMExports();
