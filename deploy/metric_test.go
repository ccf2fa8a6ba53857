package deploy

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// metric is a family as a process exposes it.
type metric struct {
	kind   string   // counter, gauge or histogram
	labels []string // sorted, without those of the format and of the target
}

// metrics is what there is, by name.
type metrics map[string]metric

// exposed is what the roles expose that there are.
func exposed(t *testing.T) metrics {
	t.Helper()
	all := metrics{}
	all.scrape(t, startLocal(t))
	roles := []string{"gateway", "sidecar", "scheduler", "web", "stream"}
	first := freePorts(t, len(roles))
	for i, role := range roles {
		all.scrape(t, startRole(t, role, first+i))
	}
	return all
}

var (
	typeLine = regexp.MustCompile(`^# TYPE (\S+) (\S+)$`)
	sample   = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? \S+$`)
	label    = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
)

func (m metrics) scrape(t *testing.T, url string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines, deprecated := bufio.NewScanner(resp.Body), false
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "# HELP ") {
			deprecated = strings.Contains(lines.Text(), " Deprecated: use ")
		}
		if deprecated {
			continue // it is there by its new name, too
		}
		if found := typeLine.FindStringSubmatch(lines.Text()); found != nil {
			m[found[1]] = metric{kind: found[2]}
		} else if found := sample.FindStringSubmatch(lines.Text()); found != nil {
			m.take(t, found[1], found[2])
		}
	}
	require.NoError(t, lines.Err())
}

func (m metrics) take(t *testing.T, name, labels string) {
	t.Helper()
	family, known := m.family(name)
	if !known {
		t.Fatalf("%s has no type", name)
	}
	one := m[family]
	for _, found := range label.FindAllStringSubmatch(labels, -1) {
		if l := found[1]; l != "le" && l != "quantile" && !slices.Contains(one.labels, l) {
			one.labels = append(one.labels, l)
		}
	}
	slices.Sort(one.labels)
	m[family] = one
}

// family is the name of the metric that a sample belongs to, and whether there is one.
func (m metrics) family(name string) (family string, known bool) {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if whole, cut := strings.CutSuffix(name, part); cut && (m[whole].kind == "histogram" || m[whole].kind == "summary") {
			return whole, true
		}
	}
	one, known := m[name]
	return name, known && one.kind != "histogram"
}

// ours are the names of our own, sorted.
func (m metrics) ours() []string {
	var names []string
	for name := range m {
		if strings.HasPrefix(name, "topsail_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// registering are the functions of internal/obs that name a metric.
var registering = []string{"Counters", "SharedCounters", "Gauges", "Histograms", "CounterFunc", "GaugeFunc", "NewDesc"}

// registered are the names in the source, sorted.
func registered(t *testing.T) []string {
	t.Helper()
	files := map[string]*ast.File{}
	for _, folder := range []string{"gateway", "sidecar", "scheduler", "web", "stream", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			return err
		})
		require.NoError(t, err)
	}
	prefixes := prefixesOf(files)
	var names []string
	for path, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			names = append(names, registeredBy(n, filepath.Dir(path), prefixes)...)
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// prefixesOf are the constants "prefix" by folder: kinds of streams begin their metrics with them.
func prefixesOf(files map[string]*ast.File) map[string]string {
	prefixes := map[string]string{}
	for path, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && v.Names[0].Name == "prefix" && len(v.Values) == 1 {
				if text := textOf(v.Values[0]); strings.HasPrefix(text, "topsail_") {
					prefixes[filepath.Dir(path)] = text
				}
			}
			return true
		})
	}
	return prefixes
}

// textOf is a text in the source; empty for anything else.
func textOf(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

// registeredBy are the names of the metrics that a call in a folder registers, or that the gauge of a
// kind of streams has; none for others.
func registeredBy(n ast.Node, folder string, prefixes map[string]string) (names []string) {
	if pair, ok := n.(*ast.KeyValueExpr); ok {
		if name := gaugeOf(pair); name != "" {
			return []string{prefixes[folder] + name}
		}
	}
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(registering, function.Sel.Name) {
		return nil
	}
	if name := textOf(call.Args[0]); name != "" {
		return []string{name}
	}
	sum, ok := call.Args[0].(*ast.BinaryExpr)
	if !ok || textOf(sum.Y) == "" {
		return nil
	}
	if _, own := sum.X.(*ast.Ident); own {
		return []string{prefixes[folder] + textOf(sum.Y)}
	}
	for below, prefix := range prefixes { // of what each kind of streams has
		if filepath.Dir(below) == folder {
			names = append(names, prefix+textOf(sum.Y))
		}
	}
	return names
}

// gaugeOf is the name in Gauge: stream.Gauge{Name: …}; empty for other pairs.
func gaugeOf(pair *ast.KeyValueExpr) string {
	key, _ := pair.Key.(*ast.Ident)
	value, ok := pair.Value.(*ast.CompositeLit)
	if !ok || key == nil || key.Name != "Gauge" || len(value.Elts) == 0 {
		return ""
	}
	if name, ok := value.Elts[0].(*ast.KeyValueExpr); ok {
		return textOf(name.Value)
	}
	return ""
}
