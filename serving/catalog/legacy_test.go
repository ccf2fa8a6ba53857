package catalog_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// earlier are documents that a release before the names of this one wrote.
func earlier(t *testing.T) []catalog.Document {
	t.Helper()
	file, err := os.ReadFile("testdata/before-2.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var docs []catalog.Document
	for decoder := json.NewDecoder(bytes.NewReader(file)); decoder.More(); {
		var doc struct {
			Kind, Key string
			JSON      json.RawMessage
		}
		if err := decoder.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, catalog.Document{Kind: doc.Kind, Key: doc.Key, JSON: doc.JSON})
	}
	return docs
}

func TestDocumentsOfEarlierReleasesAreRead(t *testing.T) {
	cat, err := catalog.Decode(1, slices.Values(earlier(t)))
	if err != nil {
		t.Fatal(err)
	}
	a, v := cat.Apps["a"], cat.Version(id("m", "1"))
	if a.SLO.Std() != 100*time.Millisecond || a.ColdStart.Std() != 20*time.Second || a.Cache.TTL.Std() != time.Minute || a.Cache.Round != 0.5 || a.Policy.Gamma != 0.25 {
		t.Errorf("the app is %+v", a)
	}
	if v.Batch.Delay.Std() != 1500*time.Microsecond || v.Scale.Idle.Std() != 5*time.Minute || v.Scale.CooldownUp.Std() != 15*time.Second || v.Scale.CooldownDown.Std() != time.Minute {
		t.Errorf("its times are %+v and %+v", v.Batch, v.Scale)
	}
	want := serving.Container{
		Command: []string{"serve", "a"}, Dir: "/models", Env: map[string]string{"TOKEN": "s3cret"}, Watch: []string{"a.py"}, Driver: "exec", Secrets: map[string]string{"KEY": "key"},
		Artifacts: []serving.Artifact{{Source: "https://models.example/a", Checksum: "sha256:" + zeros, Destination: "local/a"}},
	}
	if !reflect.DeepEqual(v.Container, want) {
		t.Errorf("its container is %+v", v.Container)
	}
	if c := cat.Version(id("listening", "1")).Container; c.Addr != "10.0.0.7:7000" || c.Protocol != "v1" || c.Connections != 4 {
		t.Errorf("a container that listens is %+v", c)
	}
	if c := cat.Version(id("image", "1")).Container; c.Port != 7000 || c.Image == "" {
		t.Errorf("an image is %+v", c)
	}
	if s := cat.Version(id("pipe", "1")).Stages[1]; s.Batch.Delay.Std() != 2*time.Millisecond || s.Batch.MaxSize != 8 {
		t.Errorf("a stage is %+v", s)
	}
}

// What this release writes has all that an earlier one looks for: while a cluster is upgraded, or
// goes back, processes of both read it.
func TestEarlierReleasesReadDocuments(t *testing.T) {
	before := earlier(t)
	cat, err := catalog.Decode(1, slices.Values(before))
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]any{}
	docs, err := catalog.Diff(&serving.Catalog{}, cat)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		now[doc.Kind+"/"+doc.Key] = parsed(t, doc.JSON)
	}
	for _, doc := range before {
		missing(t, doc.Kind+"/"+doc.Key, parsed(t, doc.JSON), now[doc.Kind+"/"+doc.Key])
	}
}

// missing reports what was written and is not any more; an empty object may go.
func missing(t *testing.T, at string, was, is any) {
	t.Helper()
	switch was := was.(type) {
	case map[string]any:
		object, _ := is.(map[string]any)
		for name, value := range was {
			missing(t, at+"."+name, value, object[name])
		}
	case []any:
		list, _ := is.([]any)
		for i, value := range was {
			if i >= len(list) {
				t.Errorf("%s[%d] is gone", at, i)
				continue
			}
			missing(t, at, value, list[i])
		}
	default:
		if !reflect.DeepEqual(was, is) {
			t.Errorf("%s was %v and is %v", at, was, is)
		}
	}
}

func parsed(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
