package models

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	modelspb "github.com/topsail-serving/topsail/stream/models/proto"
	"github.com/topsail-serving/topsail/test/require"
)

// every setting, and two that are not taken from the version before.
var every = json.RawMessage(`{"artifacts":[{"checksum":"sha256:0","destination":"d","source":"s"}],"batch":{"delay_micros":2000,"max_size":8,"pad":true,"strategy":"fixed"},` +
	`"driver":"exec","env":{"A.B":null,"DEBUG":"1"},"host":{"memory_mb":64},"hosted_by":null,"labels":["l"],"replicas":0,` +
	`"resources":{"cpu":500,"gpu":{"count":1,"device":"nvidia/gpu","memory_mb":1,"runtime":"r"},"memory_mb":256},` +
	`"scale":{"cooldown_down_micros":2,"cooldown_up_micros":1,"dead_band":0.1,"idle_micros":null,"max":9,"metric":"rate","min":0,"step_down":3,"step_up":2,"target":2.5,"utilisation":0.5},` +
	`"secrets":{"k":"v"},"session":false,"signature":{"inputs":[{"name":"x","shape":[-1,2],"type":"float32"}],"outputs":[{"name":"y","type":"json"}]},` +
	`"stages":[{"after":["input"],"batch":{"max_size":2,"strategy":"aimd"},"code":"m:f","cpus":[0,2],"idempotent":true,"model":"m","name":"s","workers":2}]}`)

// goldenSettings are they as protobuf, in an update of the id 7.
const goldenSettings = "0a01371aa602a00100aa01016cb00100ba013b080010091a047261746521000000000000044029000000000000e03f39000000000000004041000000000000084048015002599a9999999999b93fc201" +
	"0e0a056669786564100818d00f2001ca01240a01731205696e7075741a016d22036d3a662802320200023a080a0461696d6410024001d201020840da011b08f4031080021a130801120a6e7669646961" +
	"2f6770751801220172e2010a0a054445425547120131ea010465786563f201100a017312087368613235363a301a0164fa01060a016b1201768202260a190a01781207666c6f617433321a0bffffffff" +
	"ffffffffff010212090a017912046a736f6e8a0207656e762e412e428a0209686f737465645f62798a02117363616c652e69646c655f6d6963726f73"

// TestEverySetting can be in both forms of a message.
func TestEverySetting(t *testing.T) {
	for _, format := range []stream.Format{stream.JSON, stream.Protobuf} {
		u := Update{UUID: "1", Model: &Model{Name: "m", Settings: every}}
		got, err := ParseUpdate(u.append(format), format)
		if err != nil || string(got.Model.Settings) != string(every) {
			t.Errorf("%v: %v\n%s, want\n%s", format, err, got.Model.Settings, every)
		}
	}
	var shown []string
	for name := range members(every) {
		shown = append(shown, name)
	}
	if slices.Sort(shown); !slices.Equal(shown, slices.Sorted(slices.Values(settingNames()))) {
		t.Errorf("the settings are %q, and this test has %q", settingNames(), shown)
	}
}

// append writes the update in a format.
func (u *Update) append(format stream.Format) []byte {
	if format == stream.JSON {
		return u.AppendJSON(nil)
	}
	return u.AppendProtobuf(nil)
}

// TestTheSchemaHasEveryMember of a version that is a setting, with those of its parts.
func TestTheSchemaHasEveryMember(t *testing.T) {
	holdMembers(t, "", reflect.TypeFor[serving.Version](), (&modelspb.Model{}).ProtoReflect().Descriptor(), apart)
}

func holdMembers(t *testing.T, path string, definition reflect.Type, message protoreflect.MessageDescriptor, apart func(string) bool) {
	t.Helper()
	for _, f := range schema.JSON.Fields(definition) {
		if path == "" && apart(f.Key) {
			continue
		}
		field := message.Fields().ByName(protoreflect.Name(f.Key))
		if field == nil {
			t.Errorf("%s has no field %s%s", message.FullName(), path, f.Key)
			continue
		}
		part := f.Type
		for part.Kind() == reflect.Pointer || part.Kind() == reflect.Slice {
			part = part.Elem()
		}
		if part.Kind() == reflect.Struct {
			holdMembers(t, path+f.Key+".", part, field.Message(), apart)
		}
	}
}

// drawSettings draws some that a message may have.
func drawSettings(t *rapid.T) json.RawMessage {
	all := members(every)
	for _, name := range settingNames() {
		switch rapid.IntRange(0, 3).Draw(t, name) {
		case 0:
			delete(all, name)
		case 1:
			all[name] = nil
		}
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	settings, err := readSettings(text)
	require.NoError(t, err)
	return settings
}

// TestSettingsInBothForms are the same, and have one checksum.
func TestSettingsInBothForms(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		u := Update{UUID: "1", Model: &Model{Name: "m", Settings: drawSettings(rt)}}
		for _, format := range []stream.Format{stream.JSON, stream.Protobuf} {
			got, err := ParseUpdate(u.append(format), format)
			if err != nil || string(got.Model.Settings) != string(u.Model.Settings) || got.content() != u.content() {
				rt.Fatalf("%v: %v\n%s, want\n%s", format, err, got.Model.Settings, u.Model.Settings)
			}
		}
	})
}

// holdSettings that were read to be written and read again in both forms, or not written at all: a
// number may be too large for protobuf.
func holdSettings(t *testing.T, u Update) {
	t.Helper()
	u = Update{UUID: "1", Model: &Model{Settings: u.Model.Settings}}
	text := u.AppendJSON(nil)
	if again, err := ParseUpdate(text, stream.JSON); err != nil || string(again.Model.Settings) != string(u.Model.Settings) {
		t.Fatalf("%s came back as %+v, %v", text, again.Model, err)
	}
	if b := u.AppendProtobuf(nil); len(b) > 0 {
		if _, err := ParseUpdate(b, stream.Protobuf); err != nil {
			t.Fatalf("%s is written as %x: %v", text, b, err)
		}
	}
}

// TestSettingsAreWrittenAlike where they are the same.
func TestSettingsAreWrittenAlike(t *testing.T) {
	const want = `{"env":{"A":"1"},"labels":null,"scale":{"max":20000,"target":0.5}}`
	for _, text := range []string{
		`{"scale": {"target": 0.50, "max": 2e4}, "labels": [], "env": {"A": "1"}}`, `{"labels": null, "env": {"A": "1"}, "scale": {"max": 20000.0, "target": 5e-1}}`,
	} {
		if got, err := readSettings([]byte(text)); err != nil || string(got) != want {
			t.Errorf("%s, %v", got, err)
		}
	}
	for _, bad := range []string{`[]`, `{"env": {"A": 1}}`, `{"replicas": 1.5}`, `{"stages": [{"nme": "a"}]}`, `{"pin": {}}`, `{"version": "1"}`, `{"a": 1, "a": 1}`, ``} {
		if got, err := readSettings([]byte(bad)); err == nil {
			t.Errorf("%s is %s", bad, got)
		}
	}
}

// TestContentOfOldMessages is as it was before there were settings: what was deployed then is the
// same when it comes again.
func TestContentOfOldMessages(t *testing.T) {
	model, ensemble, _ := examples()
	for _, one := range []struct {
		got, want string
	}{{model.content(), "55f72b00e4f91ebd8222d3109d06102f"}, {ensemble.content(), "4fa3457f378b51e1095b59b774dd9c6c"}, {(&Update{Model: source("1")}).content(), "93f81c134087fccdb4116c0b5921700c"}} {
		if one.got != one.want {
			t.Errorf("%s, want %s", one.got, one.want)
		}
	}
	model.Model.Settings = json.RawMessage(`{"replicas":8}`)
	if got := model.content(); got == "55f72b00e4f91ebd8222d3109d06102f" {
		t.Error("settings do not count")
	}
}

// TestSettled says what a model takes of the version that it replaces.
func TestSettled(t *testing.T) {
	const before = `{"model": "m", "version": "1", "description": "old", "input_type": "doubles", "input_length": 4, "bundle": "sha256:0", "replicas": 8, "current": true, "generation": "g",
		"scale": {"min": 2, "max": 9, "idle_micros": 5}, "batch": {"strategy": "fixed", "max_size": 8}, "env": {"A": "1", "B": "2"}, "labels": ["l"], "stages": [{"name": "s"}]}`
	for _, one := range []struct {
		model Model
		want  string
	}{
		{Model{Kind: "python"}, `{"batch":{"max_size":8,"strategy":"fixed"},"env":{"A":"1","B":"2"},"input_length":4,"input_type":"doubles","labels":["l"],"replicas":8,"scale":{"idle_micros":5,"max":9,"min":2},"stages":[{"name":"s"}]}`},
		{Model{Kind: "onnx", InputType: "floats", Settings: []byte(`{"scale":{"idle_micros":null,"max":3},"env":{"A":null,"C":"3"},"replicas":0,"labels":null}`)},
			`{"batch":{"max_size":8,"strategy":"fixed"},"env":{"B":"2","C":"3"},"input_length":0,"input_type":"floats","replicas":0,"scale":{"max":3,"min":2}}`},
		{Model{Kind: "sklearn", HostedBy: "host"}, `{"batch":{"max_size":8,"strategy":"fixed"},"hosted_by":"host","input_length":4,"input_type":"doubles","labels":["l"]}`},
		{Model{Kind: bundleKind, Settings: []byte(`{"stages":[{"name":"t"}],"scale":null}`)}, `{"env":{"A":"1","B":"2"},"labels":["l"],"replicas":8,"stages":[{"name":"t"}]}`},
		{Model{Kind: "python", Settings: []byte(`{"signature":{"inputs":[{"name":"x","type":"json"}]},"env":null,"scale":null,"stages":null,"labels":null}`)},
			`{"batch":{"max_size":8,"strategy":"fixed"},"replicas":8,"signature":{"inputs":[{"name":"x","type":"json"}]}}`},
	} {
		tree, err := schema.ParseJSON([]byte(before))
		require.NoError(t, err)
		got, err := json.Marshal(one.model.settled(tree.(map[string]any)))
		if err != nil || string(got) != one.want {
			t.Errorf("%+v: %v\n%s, want\n%s", one.model, err, got, one.want)
		}
	}
	if got := (&Model{Kind: "python", InputType: "doubles"}).settled(nil); len(got) != 2 {
		t.Errorf("without one before it is %v", got)
	}
}
