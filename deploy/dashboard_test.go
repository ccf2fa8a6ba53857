package deploy

import (
	"encoding/json"
	"strings"
	"testing"
)

// dashboard is what we look at of Grafana's own format.
type dashboard struct {
	SchemaVersion int `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name, Type string
			Datasource source
			Definition string
		}
	}
	Annotations struct {
		List []struct {
			Name, Expr string
			Datasource source
		}
	}
	Panels []panel
}

type source struct{ Type, UID string }

type panel struct {
	ID          int
	Type, Title string
	Datasource  source
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		RefID      string
		Expr       string // of PromQL
		Query      string // in Flux
		Datasource source
	}
}

func readDashboard(t *testing.T, file string) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "grafana/"+file)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// expressions are all of the dashboard, each with what shows it.
func (d dashboard) expressions() map[string][]string {
	all := map[string][]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all["panel "+p.Title] = append(all["panel "+p.Title], target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		all["annotation "+a.Name] = []string{a.Expr}
	}
	return all
}

func TestDashboardsCanBeImported(t *testing.T) {
	importable(t, "topsail.json", "prometheus", "Apps, Models, Stages of pipelines, Hosts of many models, Selection and feedback, Streams, Model streams, Infrastructure")
	importable(t, "topsail-influxdb.json", "influxdb", "Apps, Models, Stages of pipelines, Selection and feedback")
}

func importable(t *testing.T, file, kind, rows string) {
	d := readDashboard(t, file)
	chosen := source{Type: kind, UID: "${datasource}"} // a variable that people choose theirs with
	if d.SchemaVersion != 39 {
		t.Errorf("%s: schema version %d", file, d.SchemaVersion)
	}
	if first := d.Templating.List[0]; first.Name != "datasource" || first.Type != "datasource" {
		t.Errorf("%s: the data source is no variable: %+v", file, first)
	}
	for _, v := range d.Templating.List[1:] {
		if v.Datasource != chosen {
			t.Errorf("%s: variable %s asks %+v", file, v.Name, v.Datasource)
		}
	}
	var titles []string
	ids := map[int]string{}
	for i, p := range d.Panels {
		if other, taken := ids[p.ID]; taken {
			t.Errorf("%s: %s and %s have the id %d", file, p.Title, other, p.ID)
		}
		ids[p.ID] = p.Title
		if p.Type == "row" {
			titles = append(titles, p.Title)
			continue
		}
		if p.Datasource != chosen || len(p.Targets) == 0 {
			t.Errorf("%s: panel %s asks %+v for %d things", file, p.Title, p.Datasource, len(p.Targets))
		}
		for _, target := range p.Targets {
			if target.Datasource != chosen || target.Expr+target.Query == "" || target.RefID == "" {
				t.Errorf("%s: panel %s asks %+v", file, p.Title, target)
			}
		}
		for _, other := range d.Panels[:i] {
			if overlap(p, other) {
				t.Errorf("%s: panel %s lies over %s", file, p.Title, other.Title)
			}
		}
	}
	if got := strings.Join(titles, ", "); got != rows {
		t.Errorf("%s: rows %s", file, got)
	}
}

func overlap(a, b panel) bool {
	x, y := a.GridPos, b.GridPos
	return x.X < y.X+y.W && y.X < x.X+x.W && x.Y < y.Y+y.H && y.Y < x.Y+x.H || x.X+x.W > 24
}
