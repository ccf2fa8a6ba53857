package catalog_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// stored are the documents of one app that links one model, and of a key.
func stored(t testing.TB) []catalog.Document {
	t.Helper()
	cat := must(t, &serving.Catalog{},
		catalog.PutVersion{Version: version("m", "1")},
		catalog.PutApp{App: app("a", "m")},
		catalog.AddKey{Key: key("aaaaaaaaaa", "ci")})
	docs, err := catalog.Diff(&serving.Catalog{}, cat)
	require.NoError(t, err)
	return docs
}

func TestDocuments(t *testing.T) {
	var got []string
	for _, doc := range stored(t) {
		got = append(got, doc.Kind+"/"+doc.Key+" "+generations.ReplaceAllString(string(doc.JSON), ""))
	}
	want := []string{
		`apps/a {"name":"a","input_type":"doubles","default_output":"","latency_slo_micros":1000000,"models":["m"],"policy":{},"origin":"api"}`,
		`keys/aaaaaaaaaa {"id":"aaaaaaaaaa","name":"ci","role":"deployer","hash":"E25CaUQGTJPA61+O3/Bb2gN4xcCzHCOny4IVZWmMaZE=","created":"2023-11-14T22:13:20Z"}`,
		`models/m {"name":"m","current":"1"}`,
		`versions/m:1 {"model":"m","version":"1","input_type":"doubles","replicas":0,"origin":"api"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDecodeSkipsUnknownFields(t *testing.T) {
	docs := stored(t)
	want, err := catalog.Decode(3, slices.Values(docs))
	require.NoError(t, err)
	for i := range docs {
		docs[i].JSON = []byte(`{"from_a_newer_release":{"x":[1]},` + string(docs[i].JSON[1:]))
	}
	got, err := catalog.Decode(3, slices.Values(docs))
	if err != nil || !reflect.DeepEqual(got, want) || got.Revision != 3 || len(got.Apps) != 1 {
		t.Errorf("got %+v and error %v, want %+v", got, err, want)
	}
}

func TestDecodeErrors(t *testing.T) {
	f := func(damage func(docs []catalog.Document) []catalog.Document, want string) {
		t.Helper()
		cat, err := catalog.Decode(1, slices.Values(damage(stored(t))))
		if err == nil || !strings.Contains(err.Error(), want) || cat != nil {
			t.Errorf("got %v and error %v, want %s", cat, err, want)
		}
	}
	without := func(i int) func([]catalog.Document) []catalog.Document {
		return func(docs []catalog.Document) []catalog.Document { return slices.Delete(docs, i, i+1) }
	}
	replace := func(i int, old, new string) func([]catalog.Document) []catalog.Document {
		return func(docs []catalog.Document) []catalog.Document {
			docs[i].JSON = []byte(strings.Replace(string(docs[i].JSON), old, new, 1))
			return docs
		}
	}
	const theApp, theKey, theModel, theVersion = 0, 1, 2, 3
	f(without(theModel), `there are 0 documents for 1 models`)
	f(without(theVersion), `model "m" has no versions`)
	f(replace(theApp, `"name":"a"`, `"name":"b"`), `decode apps/a: it is about "b"`)
	f(replace(theModel, `"name":"m"`, `"name":"n"`), `decode models/m: it is about "n"`)
	f(replace(theVersion, `"version":"1"`, `"version":"2"`), `decode versions/m:1: it is about "m:2"`)
	f(replace(theModel, `"current":"1"`, `"current":"2"`), `its current version "2" does not exist`)
	f(replace(theApp, `["m"]`, `["n"]`), `links model "n", which does not exist`)
	f(replace(theVersion, `"doubles"`, `"words"`), `decode versions/m:1: input type "words" is unknown`)
	f(replace(theApp, `{`, `{{`), `decode apps/a: invalid character`)
	f(replace(theKey, `"id":"a`, `"id":"b`), `decode keys/aaaaaaaaaa: it is about "baaaaaaaaa"`)
	f(replace(theKey, `"hash":"`, `"hash":"!`), `decode keys/aaaaaaaaaa: illegal base64`)
}

func TestDecodeSkipsUnknownKinds(t *testing.T) {
	docs := stored(t)
	want, err := catalog.Decode(3, slices.Values(docs))
	require.NoError(t, err)
	docs = append(docs, catalog.Document{Kind: "from_a_newer_release", Key: "a", JSON: []byte("?")})
	if got, err := catalog.Decode(3, slices.Values(docs)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v and error %v, want %+v", got, err, want)
	}
}

// FuzzDecode decodes one document beside sound ones, and what it decodes has to
// encode and decode again to the same.
func FuzzDecode(f *testing.F) {
	sound := stored(f)
	for _, doc := range sound {
		f.Add(doc.Kind, doc.Key, doc.JSON)
	}
	f.Add(catalog.Versions, "m:2", []byte(`{"model":"m","version":"2","input_type":"d","labels":[],"container":{"env":{}}}`))
	f.Add(catalog.Apps, "b", []byte(`null`))
	f.Add(catalog.Streams, "s", []byte(`{"name":"s","kind":"data","input":["in"],"output":"out","dead_letter":"dead","suspension":{"since":"2026-01-02T03:04:05.6+07:00"}}`))
	f.Add(catalog.Keys, "bbbbbbbbbb", []byte(`{"id":"bbbbbbbbbb","name":"k","role":"query","apps":["a"],"hash":"AA==","expires":"2026-01-02T03:04:05.6+07:00","limit":{}}`))
	f.Fuzz(func(t *testing.T, kind, key string, json []byte) {
		cat, err := catalog.Decode(1, slices.Values(append(slices.Clone(sound), catalog.Document{Kind: kind, Key: key, JSON: json})))
		if err != nil {
			return
		}
		for _, object := range objects(cat) {
			if object.Check() != nil {
				return // no store has been given it
			}
		}
		docs, err := catalog.Diff(&serving.Catalog{}, cat)
		require.NoError(t, err)
		again, err := catalog.Decode(1, slices.Values(docs))
		if err != nil || encode(t, again) != encode(t, cat) {
			t.Fatalf("got %s and error %v, want %s", encode(t, again), err, encode(t, cat))
		}
	})
}

type checker interface{ Check() error }

func objects(cat *serving.Catalog) (all []checker) {
	for _, a := range cat.Apps {
		all = append(all, a)
	}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			all = append(all, v)
		}
	}
	for _, k := range cat.Keys {
		all = append(all, k)
	}
	for _, s := range cat.Streams {
		all = append(all, s)
	}
	return all
}
