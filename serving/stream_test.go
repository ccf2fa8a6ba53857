package serving

import (
	"slices"
	"strings"
	"testing"
)

func TestAppsOfARecord(t *testing.T) {
	if got := SplitApps(" a, b ,c"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %q", got)
	}
	for text, want := range map[string]string{
		"a": "", "a, b": "", strings.Repeat("a,", MaxRecordApps) + "a": "at most 16", "a,a": `app "a" is named twice`,
		"": "app name", "a,,b": "app name", "a;b": "app name",
	} {
		if err := CheckApps(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
