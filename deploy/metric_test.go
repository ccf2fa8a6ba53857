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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
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
	var names []string
	for _, folder := range []string{"gateway", "sidecar", "scheduler", "web", "stream", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if name := registeredBy(n); name != "" {
					names = append(names, name)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// registeredBy is the name of the metric that a call registers; empty for others.
func registeredBy(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(registering, function.Sel.Name) {
		return ""
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	name, _ := strconv.Unquote(literal.Value)
	return name
}
