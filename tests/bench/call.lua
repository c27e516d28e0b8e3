-- wrk: tools/call in one session. TOKEN, SID and BODY come from the environment.
local body = os.getenv("BODY")
wrk.method = "POST"
wrk.body = body
wrk.headers["Authorization"] = "Bearer " .. os.getenv("TOKEN")
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
wrk.headers["mcp-session-id"] = os.getenv("SID")

-- One line that a script can read: requests per second, p50 and p99 in µs, what failed.
function done(summary, latency, requests)
  local bad = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status + summary.errors.timeout
  io.write(string.format("RESULT %.0f %.0f %.0f %d\n", summary.requests / (summary.duration / 1e6),
    latency:percentile(50), latency:percentile(99), bad))
end
