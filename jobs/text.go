package jobs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/nomad/api"
)

// Text is a job as JSON, which `nomad job run -json` takes: with the names of Nomad's API, durations in nanoseconds, and
// without what is left to Nomad.
func Text(job *api.Job) string {
	var text strings.Builder
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	if err := to.Encode(given(reflect.ValueOf(job))); err != nil {
		panic(err) // there is nothing in a job that JSON cannot hold
	}
	return text.String()
}

// isUTF8 says whether all text of a job is UTF-8, as JSON has it.
func isUTF8(job *api.Job) bool { return utf8.ValidString(fmt.Sprint(given(reflect.ValueOf(job)))) }

// given is what of a value of Nomad's API is set: without nil, and without zero where no pointer says that it is meant. It
// does not change with a release of the API that has more fields.
func given(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return given(v.Elem())
	case reflect.Struct:
		fields := map[string]any{}
		for field, value := range v.Fields() {
			if !value.IsZero() {
				fields[field.Name] = given(value)
			}
		}
		return fields
	case reflect.Map:
		entries := map[string]any{}
		for key, value := range v.Seq2() {
			entries[key.String()] = given(value)
		}
		return entries
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = given(v.Index(i))
		}
		return list
	}
	return v.Interface()
}
