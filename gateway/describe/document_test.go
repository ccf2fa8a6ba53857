package describe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/openapi"
	"github.com/topsail-serving/topsail/test/require"
)

// shop is a catalog with apps of all kinds.
func shop() *serving.Catalog {
	model := func(name string, of serving.InputType, lengths ...int) *serving.Model {
		m := &serving.Model{Name: name, Current: "1", Versions: map[string]*serving.Version{}}
		for i, n := range lengths {
			id := serving.ModelID{Model: name, Version: fmt.Sprint(i + 1)}
			m.Versions[id.Version] = &serving.Version{ModelID: id, InputType: of, InputLength: n}
		}
		return m
	}
	cat := &serving.Catalog{Apps: map[string]*serving.App{}, Models: map[string]*serving.Model{}}
	for _, m := range []*serving.Model{
		model("two", serving.Doubles, 2, 3), model("also-two", serving.Doubles, 2), model("three", serving.Doubles, 3), model("any", serving.Doubles, 0),
		model("image", serving.Floats, 150_528), model("four", serving.Bytes, 4), model("stage", serving.Ints, 5),
	} {
		cat.Models[m.Name] = m
	}
	for _, a := range []serving.App{
		{Name: "wine", Description: "Which \"cultivar\"\na wine is of", InputType: serving.Doubles, Models: []string{"two"}, Example: "[14.2, 1.7]", Policy: serving.PolicySpec{Kind: serving.PolicyExp3}},
		{Name: "agree", InputType: serving.Doubles, Models: []string{"two", "also-two"}, ColdStart: serving.Duration(30 * time.Second)},
		{Name: "differ", InputType: serving.Doubles, Models: []string{"two", "three"}},
		{Name: "one-takes-any", InputType: serving.Doubles, Models: []string{"two", "any"}},
		{Name: "canary", InputType: serving.Doubles, Models: []string{"two"}, Policy: serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "2"}},
		{Name: "no.model_yet", InputType: serving.Doubles, Example: `{"no": "input"}`},
		{Name: "missing", InputType: serving.Doubles, Models: []string{"gone"}},
		{Name: "image", InputType: serving.Floats, Models: []string{"image"}},
		{Name: "four", InputType: serving.Bytes, Models: []string{"four"}, RequireKey: true},
		{Name: "bytes", InputType: serving.Bytes},
		{Name: "text", InputType: serving.Strings, Example: `"` + strings.Repeat("long", maxExample) + `"`},
		{Name: "Steps", InputType: serving.Ints, Stages: serving.Pipeline{{Name: "a", Model: "stage"}, {Name: "b", Model: "three"}}},
	} {
		a.SLO = serving.Duration(20 * time.Millisecond)
		cat.Apps[a.Name] = &a
	}
	return cat
}

func written(t testing.TB, cat *serving.Catalog, change func(*Document)) []byte {
	t.Helper()
	d := Document{MaxBatch: 4096, Feedback: true, Metrics: true, Keys: SomeKeys, Catalog: cat}
	for _, app := range cat.Apps {
		d.Apps = append(d.Apps, app)
	}
	if change != nil {
		change(&d)
	}
	var b bytes.Buffer
	require.NoError(t, d.Write(&b))
	return b.Bytes()
}

// read is what the tests look at of a document.
type read struct {
	Security []map[string][]string
	Paths    map[string]map[string]struct {
		OperationID, Description string
		Security                 *[]map[string][]string
		RequestBody              struct {
			Content map[string]struct {
				Schema  struct{ Ref string } `json:"schema"`
				Example struct{ Input json.RawMessage }
			}
		}
	}
	Components struct {
		Schemas         map[string]json.RawMessage
		SecuritySchemes map[string]any
	}
}

func parsed(t testing.TB, text []byte) (r read) {
	t.Helper()
	text = bytes.ReplaceAll(text, []byte(`{"$ref":`), []byte(`{"Ref":`))
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

func TestApps(t *testing.T) {
	text := written(t, shop(), nil)
	openapi.Load(t, text)
	r := parsed(t, text)
	long := r.Paths["/image/predict"]["post"].RequestBody.Content["application/json"].Example.Input
	if long != nil {
		t.Errorf("an example of 150,528 numbers is made up: %.40s…", long)
	}
	for app, want := range map[string]struct{ schema, example, description string }{
		"wine":          {"Doubles2Request", "[14.2, 1.7]", "Which \"cultivar\"\na wine is of\n\nAnswers within 20ms. Its policy is `exp3`."},
		"agree":         {"Doubles2Request", "[1.5,2.5]", "Answers within 20ms, or within 30s while no replica is ready. Its policy is `single`."},
		"differ":        {"DoublesRequest", "[1.5,2.5]", "Answers within 20ms. Its policy is `single`."},
		"one-takes-any": {"DoublesRequest", "[1.5,2.5]", "Answers within 20ms. Its policy is `single`."},
		"canary":        {"DoublesRequest", "[1.5,2.5]", "Answers within 20ms. Its policy is `versions`."},
		"no.model_yet":  {"DoublesRequest", "[1.5,2.5]", "Answers within 20ms. Its policy is `single`."},
		"missing":       {"DoublesRequest", "[1.5,2.5]", "Answers within 20ms. Its policy is `single`."},
		"four":          {"Bytes4Request", `"AAAAAA=="`, "Answers within 20ms. Its policy is `single`."},
		"bytes":         {"BytesRequest", `"AAAA"`, "Answers within 20ms. Its policy is `single`."},
		"text":          {"StringsRequest", `"a text"`, "Answers within 20ms. Its policy is `single`."},
		"Steps":         {"Integers5Request", "[1,2,3,4,5]", "Answers within 20ms, by asking 2 models one after another."},
	} {
		op, ok := r.Paths["/"+app+"/predict"]["post"]
		body := op.RequestBody.Content["application/json"]
		if !ok || body.Schema.Ref != "#/components/schemas/"+want.schema || string(body.Example.Input) != want.example || op.Description != want.description || op.OperationID != "predict_"+app {
			t.Errorf("%s: %+v", app, op)
		}
		update := r.Paths["/"+app+"/update"]["post"]
		if ref := update.RequestBody.Content["application/json"].Schema.Ref; ref != "#/components/schemas/"+strings.TrimSuffix(want.schema, "Request")+"Update" || update.OperationID != "update_"+app {
			t.Errorf("%s: %+v", app, update)
		}
	}
	if n := len(r.Paths); n != 2*12+3 {
		t.Errorf("it has %d paths", n)
	}
}

// What a port does not serve, and whom it does not ask for keys, is not described.
func TestPorts(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(*Document)
		paths    int
		security string
	}{
		{"all", nil, 27, `[{},{"bearer":[]},{"key":[]}]`},
		{"no keys", func(d *Document) { d.Keys = NoKeys }, 27, ""},
		{"keys for all", func(d *Document) { d.Keys = AllKeys }, 27, `[{"bearer":[]},{"key":[]}]`},
		{"no feedback", func(d *Document) { d.Feedback = false }, 15, `[{},{"bearer":[]},{"key":[]}]`},
		{"no metrics", func(d *Document) { d.Metrics = false }, 26, `[{},{"bearer":[]},{"key":[]}]`},
		{"no apps", func(d *Document) { d.Apps = nil }, 3, `[{},{"bearer":[]},{"key":[]}]`},
	} {
		text := written(t, shop(), tt.change)
		openapi.Load(t, text)
		r := parsed(t, text)
		if len(r.Paths) != tt.paths {
			t.Errorf("%s: %d paths, want %d", tt.name, len(r.Paths), tt.paths)
		}
		security, _ := json.Marshal(r.Security)
		if tt.security == "" && (r.Security != nil || r.Components.SecuritySchemes != nil) || tt.security != "" && string(security) != tt.security {
			t.Errorf("%s: security is %s", tt.name, security)
		}
		for path, item := range r.Paths {
			for _, op := range item {
				needs := strings.HasPrefix(path, "/four/") && strings.Contains(tt.security, "{},")
				if needs != (op.Security != nil && len(*op.Security) == 2) || (path == "/health") != (op.Security != nil && len(*op.Security) == 0) {
					t.Errorf("%s: %s has the security %v", tt.name, path, op.Security)
				}
			}
		}
		if has := bytes.Contains(text, []byte(`DoublesFeedback"`)); has != (tt.name != "no feedback" && tt.name != "no apps") {
			t.Errorf("%s: schemas of feedback = %v", tt.name, has)
		}
	}
}

// The same apps make the same bytes, in whatever order they come.
func TestTheSameBytes(t *testing.T) {
	want := written(t, shop(), nil)
	for range 10 {
		got := written(t, shop(), func(d *Document) {
			rand.Shuffle(len(d.Apps), func(i, j int) { d.Apps[i], d.Apps[j] = d.Apps[j], d.Apps[i] })
		})
		if !bytes.Equal(got, want) {
			t.Fatal("it depends on the order of the apps")
		}
	}
}

// Names come from a catalog, which checks them; whatever they are, the document stays one.
func TestOddNames(t *testing.T) {
	const odd = "a/b {c}\"\\\r\n<script>%ü"
	cat := &serving.Catalog{Apps: map[string]*serving.App{odd: {Name: odd, Description: odd, InputType: serving.Strings, Example: `"\u0000\"}"`}}}
	text := written(t, cat, nil)
	openapi.Load(t, text)
	const path = "/a%2Fb%20%7Bc%7D%22%5C%0D%0A%3Cscript%3E%25%C3%BC/predict"
	if op, ok := parsed(t, text).Paths[path]["post"]; !ok || op.OperationID != "predict_"+odd {
		t.Errorf("%s", text)
	}
}

// What the writer says ends it.
func TestWriterThatFails(t *testing.T) {
	d := Document{Catalog: shop()}
	full := errors.New("full")
	if err := d.Write(failing{full}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// many is a catalog of so many apps like those that people have.
func many(n int) *serving.Catalog {
	cat := &serving.Catalog{Apps: map[string]*serving.App{}, Models: map[string]*serving.Model{}}
	for i := range n {
		name := fmt.Sprintf("app-%d", i)
		id := serving.ModelID{Model: "model-" + name, Version: "1"}
		cat.Models[id.Model] = &serving.Model{Name: id.Model, Current: "1", Versions: map[string]*serving.Version{"1": {ModelID: id, InputLength: 13}}}
		cat.Apps[name] = &serving.App{
			Name: name, Description: "Which cultivar a wine is of, by its chemistry", InputType: serving.Doubles, SLO: serving.Duration(20 * time.Millisecond), Models: []string{id.Model},
			Example: "[14.23, 1.71, 2.43, 15.6, 127.0, 2.8, 3.06, 0.28, 2.29, 5.64, 1.04, 3.92, 1065.0]",
		}
	}
	return cat
}

func BenchmarkDocument(b *testing.B) {
	for _, n := range []int{3, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := Document{MaxBatch: 4096, Feedback: true, Metrics: true, Catalog: many(n)}
			for _, app := range d.Catalog.Apps {
				d.Apps = append(d.Apps, app)
			}
			slices.SortFunc(d.Apps, func(x, y *serving.App) int { return strings.Compare(y.Name, x.Name) })
			b.ReportAllocs()
			var out bytes.Buffer
			for b.Loop() {
				out.Reset()
				require.NoError(b, d.Write(&out))
			}
			b.ReportMetric(float64(out.Len()), "bytes")
		})
	}
}
