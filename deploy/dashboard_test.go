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
		Expr       string
		Datasource source
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "grafana/topsail.json")), &d); err != nil {
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

// source is the variable that people choose their Prometheus with.
var anySource = source{Type: "prometheus", UID: "${datasource}"}

func TestTheDashboardCanBeImported(t *testing.T) {
	d := readDashboard(t)
	if d.SchemaVersion != 39 {
		t.Errorf("schema version %d", d.SchemaVersion)
	}
	if first := d.Templating.List[0]; first.Name != "datasource" || first.Type != "datasource" {
		t.Errorf("the data source is no variable: %+v", first)
	}
	for _, v := range d.Templating.List[1:] {
		if v.Datasource != anySource {
			t.Errorf("variable %s asks %+v", v.Name, v.Datasource)
		}
	}
	rows := []string{}
	ids := map[int]string{}
	for i, p := range d.Panels {
		if other, taken := ids[p.ID]; taken {
			t.Errorf("%s and %s have the id %d", p.Title, other, p.ID)
		}
		ids[p.ID] = p.Title
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if p.Datasource != anySource || len(p.Targets) == 0 {
			t.Errorf("panel %s asks %+v for %d things", p.Title, p.Datasource, len(p.Targets))
		}
		for _, target := range p.Targets {
			if target.Datasource != anySource || target.Expr == "" || target.RefID == "" {
				t.Errorf("panel %s asks %+v", p.Title, target)
			}
		}
		for _, other := range d.Panels[:i] {
			if overlap(p, other) {
				t.Errorf("panel %s lies over %s", p.Title, other.Title)
			}
		}
	}
	if got := strings.Join(rows, ", "); got != "Apps, Models, Stages of pipelines, Hosts of many models, Selection and feedback, Streams, Model streams, Infrastructure" {
		t.Errorf("rows %s", got)
	}
}

func overlap(a, b panel) bool {
	x, y := a.GridPos, b.GridPos
	return x.X < y.X+y.W && y.X < x.X+x.W && x.Y < y.Y+y.H && y.Y < x.Y+x.H || x.X+x.W > 24
}
