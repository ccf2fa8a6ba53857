package catalog_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func TestRedact(t *testing.T) {
	v := version("m", "1")
	v.Container = serving.Container{
		Env: map[string]string{"TOKEN": "s3cret"}, BundleURL: "https://user:s3cret@models.example/b.zip",
		Artifacts: []serving.Artifact{{Source: "s3::https://models.example/a?aws_access_key_secret=s3cret"}, {Source: "https://models.example/a@2"}},
	}
	before, _ := json.Marshal(v)
	shown := catalog.Redact(&v)
	if text, _ := json.Marshal(shown); strings.Contains(string(text), "s3cret") {
		t.Errorf("got %s", text)
	}
	if got := shown.Container.Artifacts[1].Source; got != "https://models.example/a@2" {
		t.Errorf("what is no secret is %s", got)
	}
	if after, _ := json.Marshal(v); string(after) != string(before) {
		t.Errorf("the version itself is %s", after)
	}
	plain := version("m", "1")
	if !reflect.DeepEqual(catalog.Redact(&plain), &plain) {
		t.Errorf("a version without secrets is %+v", catalog.Redact(&plain))
	}
}

func TestRedactURLs(t *testing.T) {
	text := `cd /srv && python m.py --from="https://u:s3cret@models.example/m" --bundle s3::https://models.example/b?sig=s3cret --more?`
	want := `cd /srv && python m.py --from="https://(hidden)@models.example/m" --bundle s3::https://models.example/b?(hidden) --more?`
	if got := catalog.RedactURLs(text); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRedactURL(t *testing.T) {
	for url, want := range map[string]string{
		"":                                  "",
		"https://models.example/b.zip":      "https://models.example/b.zip",
		"https://models.example/b.zip?":     "https://models.example/b.zip?",
		"https://u:p@models.example/b":      "https://(hidden)@models.example/b",
		"https://u:p@q@models.example/b":    "https://(hidden)@models.example/b",
		"git::ssh://git@models.example/m":   "git::ssh://(hidden)@models.example/m",
		"https://models.example/b?sig=a?b":  "https://models.example/b?(hidden)",
		"s3::https://k:s@m.example/b?x=y#z": "s3::https://(hidden)@m.example/b?(hidden)",
		"git@models.example:m/n.git?ref=1":  "git@models.example:m/n.git?(hidden)",
		"/srv/bundles/b.zip":                "/srv/bundles/b.zip",
	} {
		if got := catalog.RedactURL(url); got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
}
