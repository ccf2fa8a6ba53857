package jobs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
)

// TestGolden compares the base with a golden file, and what each variant has otherwise with another one.
func TestGolden(t *testing.T) {
	job := made(t, func(*Spec) {})
	golden(t, "testdata/base.json", Text(job))
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(variants)) {
		fmt.Fprintf(&text, "# %s\n%s\n", name, strings.Join(differences("", fieldsOf(job), fieldsOf(made(t, variants[name]))), ""))
	}
	golden(t, "testdata/variants.txt", text.String())
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is otherwise (go test ./jobs -update writes it anew):\n%s", file, got)
	}
}

// fieldsOf is what is set of a job without the hashes, with objects that have names by these.
func fieldsOf(job *api.Job) map[string]any {
	fields := byName(given(reflect.ValueOf(job))).(map[string]any)
	meta := fields["Meta"].(map[string]any)
	delete(meta, MetaSpec)
	delete(meta, MetaSettings)
	return fields
}

func byName(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			value[name] = byName(one)
		}
	case []any:
		named := map[string]any{}
		for _, one := range value {
			if fields, is := one.(map[string]any); is && fields["Name"] != nil {
				named[fmt.Sprint(fields["Name"])] = byName(fields)
			}
		}
		if len(named) == len(value) {
			return named
		}
	}
	return value
}

// differences are the values, each in a line with its path, that an object has otherwise than another one, and the paths that
// it has not.
func differences(path string, from, to map[string]any) (lines []string) {
	names := maps.Clone(from)
	maps.Copy(names, to)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, now := from[name], to[name]
		before, wereFields := was.(map[string]any)
		after, areFields := now.(map[string]any)
		switch {
		case now == nil:
			lines = append(lines, "- "+path+name+"\n")
		case wereFields && areFields:
			lines = append(lines, differences(path+name+".", before, after)...)
		case !reflect.DeepEqual(was, now):
			text, err := json.Marshal(now)
			if err != nil {
				panic(err)
			}
			lines = append(lines, "+ "+path+name+" = "+string(text)+"\n")
		}
	}
	return lines
}

// TestText: what is shown of a job is all that is not left to Nomad.
func TestText(t *testing.T) {
	for name, change := range variants {
		job := made(t, change)
		var shown api.Job
		if err := json.Unmarshal([]byte(Text(job)), &shown); err != nil {
			t.Fatal(err)
		}
		if got, want := whole(t, &shown), whole(t, job); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// whole is a job as Nomad completes it.
func whole(t *testing.T, job *api.Job) string {
	t.Helper()
	job.Canonicalize()
	text, err := json.MarshalIndent(job, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
