package catalog_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// TestAuditProperties takes steps by the API and the file: every object whose document
// has changed has one entry, no other has, and no secret is in any.
func TestAuditProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := drawCatalog(t)
		to, err := drawStep(t, from)
		if err != nil {
			to = &serving.Catalog{Revision: from.Revision + 1} // as with a change that takes everything away
		}
		at := time.Unix(1_700_000_000, 5)
		entries, err := catalog.Audit(serving.Author{Who: "anna", From: "10.0.0.7"}, from, to, at)
		require.NoError(t, err)
		checkEntries(t, from, to, entries)
		for _, e := range entries {
			if e.Who != "anna" || e.From != "10.0.0.7" || !e.At.Equal(at) || e.Revision != to.Revision || e.ID != "" {
				t.Fatalf("got %+v", e)
			}
		}
		checkNoSecrets(t, from, to, encode(t, entries))
	})
}

// checkEntries compares the entries with all documents of both catalogs.
func checkEntries(t *rapid.T, from, to *serving.Catalog, entries []serving.AuditEntry) {
	kinds := map[string]string{catalog.Apps: "app", catalog.Models: "model", catalog.Versions: "version", catalog.Keys: "key", catalog.Streams: "stream"}
	before, after := allDocuments(t, from), allDocuments(t, to)
	want := map[string]string{}
	for at := range before {
		if after[at] == nil {
			after[at] = nil // it is to be looked at, too
		}
	}
	for at := range after {
		name := kinds[at[0]] + " " + at[1]
		switch was, is := before[at], after[at]; {
		case string(was) == string(is):
		case was == nil:
			want[name] = fmt.Sprintf("create nothing %v", open(t, is))
		case is == nil:
			want[name] = fmt.Sprintf("delete %v nothing", open(t, was))
		default:
			want[name] = fmt.Sprintf("update %v %v", open(t, was), open(t, is))
		}
	}
	got, order := map[string]string{}, []string(nil)
	for _, e := range entries {
		name := e.Kind + " " + e.Name
		if got[name] != "" {
			t.Fatalf("two entries of %s", name)
		}
		got[name] = fmt.Sprintf("%s %v %v", e.Action, open(t, e.Before), open(t, e.After))
		order = append(order, name)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("got\n%v\nwant\n%v", got, want)
	}
	if !slices.IsSorted(order) {
		t.Fatalf("they come as %q", order)
	}
}

// open is an object without its secrets, to compare it.
func open(t *rapid.T, text []byte) any {
	if len(text) == 0 {
		return "nothing"
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	delete(object, "hash")
	env, _ := object["env"].(map[string]any)
	for name := range env {
		env[name] = catalog.Hidden
	}
	if url, has := object["bundle_url"].(string); has {
		object["bundle_url"] = catalog.RedactURL(url)
	}
	return object
}

func allDocuments(t *rapid.T, cat *serving.Catalog) map[[2]string][]byte {
	docs, err := catalog.Diff(&serving.Catalog{}, cat)
	require.NoError(t, err)
	all := map[[2]string][]byte{}
	store(all, docs)
	return all
}

func checkNoSecrets(t *rapid.T, from, to *serving.Catalog, text string) {
	secrets := []string{"s3cret", `"hash"`}
	for _, cat := range []*serving.Catalog{from, to} {
		for _, k := range cat.Keys {
			secrets = append(secrets, base64.StdEncoding.EncodeToString(k.Hash))
		}
	}
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Fatalf("%s is in %s", secret, text)
		}
	}
}

func TestAudit(t *testing.T) {
	hidden := version("m", "1")
	hidden.Container.Env = map[string]string{"TOKEN": "s3cret", "": "s3cret"}
	before := must(t, &serving.Catalog{}, catalog.AddKey{Key: key("aaaaaaaaaa", "ci")}, catalog.PutApp{App: app("a")})
	var report catalog.Report
	after := must(t, before, catalog.Import{Apps: []serving.App{app("a", "m")}, Versions: []serving.Version{hidden}, Report: &report})
	after = must(t, after, catalog.RevokeKey{ID: "aaaaaaaaaa"})
	entries, err := catalog.Audit(serving.Author{Who: "file"}, before, after, time.Unix(1_700_000_000, 0))
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %s %s %s %s", e.Action, e.Kind, e.Name, e.Before, generations.ReplaceAll(e.After, nil)))
	}
	app := func(models, origin string) string {
		return `{"name":"a","input_type":"doubles","default_output":"","latency_slo_micros":1000000,"models":` + models + `,"policy":{},"origin":"` + origin + `"}`
	}
	want := []string{
		"update app a " + app(`[]`, "api") + " " + app(`["m"]`, "apply"),
		`delete key aaaaaaaaaa {"id":"aaaaaaaaaa","name":"ci","role":"deployer","created":"2023-11-14T22:13:20Z"} `,
		`create model m  {"name":"m","current":"1"}`,
		`create version m:1  {"model":"m","version":"1","input_type":"doubles","replicas":0,"env":{"":"(hidden)","TOKEN":"(hidden)"},"origin":"apply"}`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if hidden := after.Version(hidden.ModelID).Container.Env["TOKEN"]; hidden != "s3cret" {
		t.Errorf("the catalog has %s", hidden)
	}
	if entries, err := catalog.Audit(serving.Author{Who: "file"}, after, after, time.Now()); err != nil || entries != nil {
		t.Errorf("got %v and error %v for nothing", entries, err)
	}
}

func TestAuthor(t *testing.T) {
	by := serving.Author{Who: "anna", From: "10.0.0.7"}
	change := catalog.DeleteApp{Name: "a"}
	if got := catalog.Author(catalog.Signed{Change: change, By: by}); got != by {
		t.Errorf("got %+v", got)
	}
	if got := catalog.Author(change); got != (serving.Author{}) {
		t.Errorf("got %+v of who did not sign", got)
	}
}
