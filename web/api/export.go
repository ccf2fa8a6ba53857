package api

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/inflight"
	"github.com/topsail-serving/topsail/web/rest"
)

// Catalog is all apps and versions.
type Catalog struct {
	Revision uint64            `json:"revision"` // not taken
	Apps     []serving.App     `json:"apps,omitzero"`
	Versions []Version         `json:"versions,omitzero"`
	Current  map[string]string `json:"current,omitzero"` // version by model
	Prune    bool              `json:"prune,omitempty"`
	Replace  bool              `json:"replace,omitempty"`
}

const tomlType = "application/toml"

func (a *api) exportCatalog(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	if err := v.scope.whole(); err != nil {
		return err
	}
	if prefers(r, tomlType, rest.JSONType) {
		return a.exportTOML(w, v)
	}
	return rest.Respond(w, http.StatusOK, v.catalog())
}

func (v view) catalog() Catalog {
	doc := Catalog{Revision: v.cat.Revision, Apps: []serving.App{}, Versions: []Version{}, Current: map[string]string{}}
	for _, app := range v.apps() {
		doc.Apps = append(doc.Apps, v.app(app))
	}
	for _, m := range v.models() {
		for _, version := range versions(m) {
			doc.Versions = append(doc.Versions, v.version(version))
		}
		if m.Current != "" {
			doc.Current[m.Name] = m.Current
		}
	}
	return doc
}

func (a *api) exportTOML(w http.ResponseWriter, v view) error {
	text, err := a.TOML(v.redacted())
	if err != nil {
		return err
	}
	if err := inflight.Answer(w, len(text)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", tomlType)
	_, _ = w.Write(text) // a client that left needs no answer
	return nil
}

// redacted is the catalog without what is hidden from the caller, and without keys.
func (v view) redacted() *serving.Catalog {
	cat := &serving.Catalog{Revision: v.cat.Revision, Apps: v.cat.Apps, Models: map[string]*serving.Model{}}
	for name, m := range v.cat.Models {
		shown := *m
		shown.Versions = map[string]*serving.Version{}
		for _, version := range versions(m) {
			shown.Versions[version.Version] = v.shown(version)
		}
		cat.Models[name] = &shown
	}
	return cat
}

// prefers says whether a client would rather have one type than another, which it gets
// when it does not say.
func prefers(r *http.Request, one, other string) bool {
	quality := func(kind string) float64 {
		best, bestFits := 0.0, 0
		major, _, _ := strings.Cut(kind, "/")
		for item := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
			name, parameters, err := mime.ParseMediaType(item)
			fits := map[string]int{"*/*": 1, major + "/*": 2, kind: 3}[name]
			if err != nil || fits <= bestFits {
				continue
			}
			q, err := strconv.ParseFloat(parameters["q"], 64)
			if err != nil {
				q = 1
			}
			best, bestFits = q, fits
		}
		return best
	}
	return quality(one) > quality(other)
}
