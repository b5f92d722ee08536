-- The method and the body, if they are given after the URL.
init = function(arguments)
  if arguments[1] == "POST" then
    wrk.method, wrk.body = "POST", arguments[2]
  end
end

-- For wrk: what it measured as one line of numbers: requests, failed requests (sockets), answers above 399, p50 and p99
-- in microseconds, and the duration in microseconds.
done = function(summary, latency, requests)
  local errors = summary.errors
  local sockets = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("RESULT %d %d %d %d %d %d\n", summary.requests, sockets, errors.status,
    latency:percentile(50), latency:percentile(99), summary.duration))
end
