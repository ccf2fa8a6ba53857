package activity

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

var (
	metricRow = regexp.MustCompile("(?m)^\\| `(topsail_\\w+)` \\| (counter|gauge|histogram) \\| ([^|]*)\\|")
	fieldRow  = regexp.MustCompile("(?m)^\\| `(topsail_\\w+)` \\| ([^|]*) \\| `(\\w*)([^`]*)` \\| `(topsail_\\w+)` \\|")
)

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// TestTheTableIsOfMetrics: docs/metrics.md has them all, with kinds and labels.
func TestTheTableIsOfMetrics(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	type metric struct {
		kind   string
		labels []string
	}
	all := map[string]metric{}
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		all[row[1]] = metric{row[2], split(row[3])}
	}
	for name, row := range table {
		m, known := all[name]
		if !known {
			t.Errorf("there is no metric %s", name)
			continue
		}
		if gauge := m.kind == "gauge"; gauge != (row.kind != counted) {
			t.Errorf("%s is a %s", name, m.kind)
		}
		for _, label := range append(slices.Clone(tagsOf[row.measurement]), row.by) {
			if label != "" && !slices.Contains(m.labels, label) {
				t.Errorf("%s has no label %s", name, label)
			}
		}
	}
}

// TestTheTableIsDocumented: so does it have the fields.
func TestTheTableIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, row := range fieldRow.FindAllStringSubmatch(string(page), -1) {
		measurement, tags, field, rest, metric := row[1], split(row[2]), row[3], row[4], row[5]
		documented[metric] = true
		r, known := table[metric]
		if !known || r.measurement != measurement || !slices.Equal(tags, append([]string{"role"}, tagsOf[measurement]...)) {
			t.Errorf("%s is documented as a field of %s with the tags %v", metric, measurement, tags)
		}
		want := r.field
		if r.by != "" {
			want = strings.TrimPrefix(r.field+"_", "_")
		}
		if field != want || (r.by != "") != (rest == "<"+r.by+">") {
			t.Errorf("%s is documented as the field %s%s", metric, field, rest)
		}
	}
	for name := range table {
		if !documented[name] {
			t.Errorf("docs/metrics.md does not have the field of %s", name)
		}
	}
}
