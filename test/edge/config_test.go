//go:build edge

package edge

// budget is what the suite sets max_inflight_bytes to: the default of a process that may have
// 1 GiB. On a machine with more the default is more, and would hide what attacks take.
const budget = 256 << 20

// settings are those of a server beside what the product comes with.
const settings = `
[gateway]
max_inflight_bytes = %d
%s
`

// apps are what is asked by the steady client, and what is attacked.
const apps = `
[[app]]
name = "steady"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = 100000
models = ["steady"]

[[model]]
name = "steady"
version = "1"
input_type = "doubles"
command = [%[1]q]
env = { EDGE_MODEL = "sum" }

[[app]]
name = "target"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = 100000
models = ["target"]

[[app]]
name = "learns"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = 100000
models = ["target", "other"]
policy = { kind = "exp3" }

[[model]]
name = "target"
version = "1"
input_type = "doubles"
command = [%[1]q]
env = { EDGE_MODEL = "sum" }

[[model]]
name = "other"
version = "1"
input_type = "doubles"
command = [%[1]q]
env = { EDGE_MODEL = "sum" }

[[app]]
name = "large"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = 5000000
models = ["large"]

[[model]]
name = "large"
version = "1"
input_type = "doubles"
command = [%[1]q]
env = { EDGE_MODEL = "large" }
`

// doors are apps behind the doors for other protocols: a chat in parts, and one with a signature.
const doors = `
[[app]]
name = "chat"
input_type = "chat"
default_output = "null"
latency_slo_micros = 5000000
models = ["talk"]
cache = { off = true }

[[model]]
name = "talk"
version = "1"
input_type = "chat"
command = [%[1]q]
env = { EDGE_MODEL = "talk" }

[[app]]
name = "named"
default_output = "null"
latency_slo_micros = 5000000
models = ["named"]
[app.signature]
inputs = [{ name = "x", type = "float64", shape = [-1] }, { name = "t", type = "string" }]
outputs = [{ name = "y", type = "float64" }]

[[model]]
name = "named"
version = "1"
command = [%[1]q]
env = { EDGE_MODEL = "talk" }
[model.signature]
inputs = [{ name = "x", type = "float64", shape = [-1] }, { name = "t", type = "string" }]
outputs = [{ name = "y", type = "float64" }]
`
