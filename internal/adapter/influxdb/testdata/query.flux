from(bucket: "topsail")
 |> range(start: 2026-01-01T00:00:00Z, stop: 2026-01-01T00:00:02Z)
 |> filter(fn: (r) => r._measurement == "topsail_alive" and r._field == "report")
