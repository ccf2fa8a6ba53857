-- Posts one body again and again, and ends with a line of JSON.
wrk.method = "POST"
wrk.body = os.getenv("BENCH_BODY")
wrk.headers["Content-Type"] = "application/json"
if os.getenv("BENCH_BODY_FILE") then
  local file = io.open(os.getenv("BENCH_BODY_FILE"), "rb")
  wrk.body = file:read("*a")
  file:close()
  if os.getenv("BENCH_JSON_BYTES") ~= "0" then
    wrk.headers["Inference-Header-Content-Length"] = os.getenv("BENCH_JSON_BYTES")
    wrk.headers["Content-Type"] = "application/octet-stream"
  elseif os.getenv("BENCH_RAW") == "true" then
    wrk.headers["Content-Type"] = "application/x-tensor"
  end
end

-- What each answer has to contain: those that do not are counted, by each thread for itself.
local want, threads = os.getenv("BENCH_WANT"), {}
wrong = 0
if want and want ~= "" then
  function response(status, headers, body)
    if not body:find(want, 1, true) then
      wrong = wrong + 1
    end
  end
end

function setup(thread)
  table.insert(threads, thread)
end

function done(summary, latency, requests)
  local e, all = summary.errors, 0
  for _, thread in ipairs(threads) do
    all = all + (thread:get("wrong") or 0)
  end
  io.write(string.format(
    '\n{"requests":%d,"took":%d,"p50":%.1f,"p99":%.1f,"errors":{"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d,"wrong":%d}}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect, e.read, e.write, e.timeout, e.status, all))
end
