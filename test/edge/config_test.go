//go:build edge

package edge

import "fmt"

// budget is what the suite sets max_inflight_bytes to: the default of a process that may have
// 1 GiB. On a machine with more the default is more, and would hide what attacks take.
const budget = 256 << 20

// settings are those of a server beside what the product comes with.
const settings = `
[gateway]
max_inflight_bytes = %d
%s
`

// app is one of doubles, whose answers take at most a tenth of a second.
func app(name, more string) string {
	return fmt.Sprintf("\n[[app]]\nname = %q\ninput_type = \"doubles\"\ndefault_output = \"-1\"\nlatency_slo_micros = 100000\n%s\n", name, more)
}

// model is one of this program, of a kind.
func model(name, kind, more string) string {
	return fmt.Sprintf("\n[[model]]\nname = %q\nversion = \"1\"\ncommand = [%q]\nenv = { %s = %q }\n%s\n", name, programs.model, modelKind, kind, more)
}

const doubles = `input_type = "doubles"`

// apps are what is asked by the steady client, and what is attacked.
func apps() string {
	return app("steady", `models = ["steady"]`) + app("target", `models = ["target"]`) +
		app("learns", "models = [\"target\", \"other\"]\npolicy = { kind = \"exp3\" }") +
		model("steady", "sum", doubles) + model("target", "sum", doubles) + model("other", "sum", doubles) + model("large", "large", doubles) + `
[[app]]
name = "large"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = 5000000
models = ["large"]
`
}

// doors is an app behind the doors for other protocols: a chat in parts.
func doors() string {
	return model("talk", "talk", `input_type = "chat"`) + `
[[app]]
name = "chat"
input_type = "chat"
default_output = "null"
latency_slo_micros = 5000000
models = ["talk"]
cache = { off = true }
`
}
