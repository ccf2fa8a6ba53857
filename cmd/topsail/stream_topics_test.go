//go:build system

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

const (
	readingSchema = `{"type":"record","name":"Reading","fields":[{"name":"id","type":"string"},{"name":"values","type":{"type":"array","items":"double"}}]}`
	scoredSchema  = `{"type":"record","name":"Scored","fields":[{"name":"id","type":"string"},{"name":"sum","type":"double"}]}`
	changedSchema = `{"type":"record","name":"Scored","fields":[{"name":"id","type":"string"},{"name":"total","type":"double"}]}`
)

// TestSchemaRegistry reads and writes Avro with a real registry, and waits for it while it is away.
func TestSchemaRegistry(t *testing.T) {
	b := startKafka(t)
	port, err := servers.FreePort()
	require.NoError(t, err)
	registry, err := servers.Registry(t.TempDir(), port)
	require.NoError(t, err)
	startServer(t, registry)
	url := "http://" + registry.Addr + servers.RegistryPath
	client, err := sr.NewClient(sr.URLs(url))
	require.NoError(t, err)
	register := func(subject, schema string) int {
		made, err := client.CreateSchema(t.Context(), subject, sr.Schema{Schema: schema})
		require.NoError(t, err)
		return made.ID
	}
	compatible := func(level sr.CompatibilityLevel) {
		if set := client.SetCompatibility(t.Context(), sr.SetCompatibility{Level: level}, "out-value"); set[0].Err != nil {
			t.Fatal(set[0].Err)
		}
	}
	id := register("in-value", readingSchema)
	register("out-value", changedSchema)
	compatible(sr.CompatBackward)
	b.create(t, "in", "out", "dead")
	reading := func(id int, name string) serving.StreamMessage {
		value, err := avro.MustParse(readingSchema).Encode(map[string]any{"id": name, "values": []any{float64(len(name)), 1.0}})
		require.NoError(t, err)
		return serving.StreamMessage{Stream: "in", Value: slices.Concat([]byte{0}, binary.BigEndian.AppendUint32(nil, uint32(id)), value)}
	}
	write := func(messages ...serving.StreamMessage) {
		if err := b.Write(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
	}
	write(reading(id, "a"), reading(id+1000, "b"), serving.StreamMessage{Stream: "in", Value: []byte("no frame")}, reading(id, "ccc"))

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scored.avsc"), []byte(scoredSchema), 0o600))
	in := start(t, dir, sumConfig(dir, quoted(programs.gosum))+streamConfig(b, "in", "out", "dead", fmt.Sprintf(`
schema_registry = %q
[stream.record]
format = "avro"
input = "values"
id = "id"
[stream.result]
value = "record"
add = { sum = "output" }
format = "avro"
schema_file = "scored.avsc"
`, url))).ready()

	// The schema of results is not compatible with that of the subject: the stream says so, and waits.
	stopped := func(what string) func() bool {
		return func() bool {
			return slices.ContainsFunc(in.conditions(), func(c string) bool { return strings.Contains(c, what) })
		}
	}
	in.until("the condition", stopped("not compatible with those that the subject has"))
	if got := len(b.read(t, "out")) + len(b.read(t, "dead")); got > 0 {
		t.Errorf("there are %d results", got)
	}
	compatible(sr.CompatNone)
	sums := func() map[string]float64 {
		all := map[string]float64{}
		for _, r := range b.read(t, "out") {
			schema, err := client.SchemaByID(t.Context(), int(binary.BigEndian.Uint32(r.Value[1:])))
			require.NoError(t, err)
			var scored struct {
				ID  string  `avro:"id"`
				Sum float64 `avro:"sum"`
			}
			if rest, err := avro.MustParse(schema.Schema).Decode(r.Value[5:], &scored); err != nil || len(rest) > 0 || r.Value[0] != 0 {
				t.Fatalf("%x: %v", r.Value, err)
			}
			all[scored.ID] = scored.Sum
		}
		return all
	}
	in.until("the results", func() bool { return len(b.read(t, "out")) == 2 && len(b.read(t, "dead")) == 2 })
	if got := sums(); got["a"] != 2 || got["ccc"] != 4 {
		t.Errorf("results %v", got)
	}
	var kinds []string
	for _, d := range b.read(t, "dead") {
		kinds = append(kinds, d.Header("topsail-kind"))
	}
	slices.Sort(kinds)
	if !slices.Equal(kinds, []string{"unknown_schema", "unreadable"}) {
		t.Errorf("dead letters %v", kinds)
	}

	// While the registry is away, a record of a new schema waits, which is no dead letter.
	newer := register("in-value", strings.Replace(readingSchema, `"items":"double"`, `"items":"double","doc":"newer"`, 1))
	registry.Freeze()
	write(reading(newer, "dddd"))
	in.until("the condition", stopped("read schemas from the registry"))
	registry.Thaw()
	in.until("its result", func() bool { return len(b.read(t, "out")) == 3 })
	if got := sums()["dddd"]; got != 5 {
		t.Errorf("its sum is %v", got)
	}
	in.until("the end of the condition", func() bool { return len(in.conditions()) == 0 })
	if dead := b.read(t, "dead"); len(dead) != 2 {
		t.Errorf("%d dead letters", len(dead))
	}
}

// TestConverter is the one of docs/streams.md: the first stage of an app makes the input of a record.
func TestConverter(t *testing.T) {
	b := startRedis(t)
	dir := t.TempDir()
	page, err := os.ReadFile("../../docs/streams.md")
	require.NoError(t, err)
	_, code, found := strings.Cut(string(page), "```python\nimport topsail\n\ndef convert")
	code, _, ended := strings.Cut(code, "```")
	if !found || !ended {
		t.Fatal("docs/streams.md has no converter")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "converter.py"), []byte("import topsail\n\ndef convert"+code), 0o600))
	config := fmt.Sprintf(`
[[app]]
name = "scored"
input_type = "bytes"
default_output = "-1"
latency_slo_micros = 1000000
[[app.stages]]
name = "convert"
model = "converter"
[[app.stages]]
name = "score"
model = "sum"

[[stream]]
name = "orders"
app = "scored"
input = ["in"]
output = "out"
dead_letter = "dead"
%s
defaults = "dead_letter"
[stream.record]
format = "bytes"
[stream.result]
value = "output"
`, b.lines) + strings.Replace(modelConfig("converter", "bytes", `["python3", "converter.py"]`, dir), "env = {", fmt.Sprintf("env = { PYTHONPATH = %q,", sdk(t)), 1)
	in := start(t, dir, sumConfig(dir, quoted(programs.gosum))+config).ready()
	if err := b.Write(t.Context(), []serving.StreamMessage{{Stream: "in", Value: []byte("1.5;2;3")}, {Stream: "in", Value: []byte("no numbers")}, {Stream: "in", Value: []byte("4")}}); err != nil {
		t.Fatal(err)
	}
	in.until("the results", func() bool { return len(b.read(t, "out")) == 2 && len(b.read(t, "dead")) == 1 })
	out := b.read(t, "out")
	if !bytes.Equal(out[0].Value, []byte("6.5")) || !bytes.HasPrefix(out[1].Value, []byte("4")) {
		t.Errorf("results %s and %s", out[0].Value, out[1].Value)
	}
	if d := b.read(t, "dead")[0]; !strings.Contains(d.Header("topsail-reason"), "could not convert string to float") {
		t.Errorf("the dead letter is %s", d.Headers)
	}
}

// conditions are those that the ops port tells.
func (in *instance) conditions() []string {
	in.t.Helper()
	_, text := page(in.t, in.ops("/health/ready"))
	var answer health
	require.NoError(in.t, json.Unmarshal([]byte(text), &answer))
	return answer.Conditions
}
