package clipper

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

const (
	defaultBatchSize = -1             // batches are sized by themselves
	noContainer      = "NO_CONTAINER" // the image of a model that has none, as Clipper's client says it
	dataPath         = "DEPRECATED"   // what Clipper's client sends for the path; it is not kept
)

// modelInfo is a version as Clipper shows it.
type modelInfo struct {
	Name      string            `json:"model_name"`
	Version   string            `json:"model_version"`
	InputType serving.InputType `json:"input_type"`
	Labels    []string          `json:"labels"`
	Container string            `json:"container_name"`
	DataPath  string            `json:"model_data_path"`
	Current   bool              `json:"is_current_version"`
}

func describeModel(m *serving.Model, v *serving.Version) modelInfo {
	return modelInfo{v.Model, v.Version, v.InputType, list(v.Labels), containerName(v.Container), dataPath, m.Current == v.Version}
}

// containerName says what a version's containers are made of.
func containerName(c serving.Container) string {
	program := ""
	if len(c.Command) > 0 {
		program = c.Command[0] // arguments may hold secrets
	}
	return cmp.Or(c.Image, c.Bundle, c.Addr, program, noContainer)
}

// addModel registers a version and makes it the current one. It has no replicas yet,
// but for one that a container manager has prepared.
func (a *admin) addModel(ctx context.Context, r request) (string, error) {
	v, err := readVersion(r)
	if err != nil {
		return "", err
	}
	done := "Successfully added model with name '" + v.Model + "' and input type '" + v.InputType.String() + "'"
	return done, a.change(ctx, func(cat *serving.Catalog) ([]catalog.Change, error) {
		if old := cat.Version(v.ModelID); old != nil && !old.Prepared {
			return nil, exists(old, v)
		}
		if err := checkLinked(cat, v); err != nil {
			return nil, err
		}
		if err := a.Check(v); err != nil {
			return nil, refusal(err.Error())
		}
		return one(catalog.PutVersion{Version: *v}), nil
	})
}

// exists refuses a version whose name is taken, in Clipper's words, and says what differs
// if it is another one.
func exists(old, v *serving.Version) error {
	text := fmt.Sprintf("model with name '%s' and version '%s' already exists", v.Model, v.Version)
	if fields := catalog.Redefined(old, v); len(fields) > 0 {
		text += fmt.Sprintf(" as another one: %v; use a new version", fields)
	}
	return refusal(text)
}

func readVersion(r request) (*serving.Version, error) {
	input, err := serving.ParseInputType(r.text("input_type"))
	if err != nil {
		return nil, refusal(err.Error())
	}
	v := &serving.Version{
		ModelID:   serving.ModelID{Model: r.text("model_name"), Version: r.text("model_version")},
		InputType: input, Labels: r.texts("labels"), Batch: serving.BatchSpec{Strategy: "aimd"},
	}
	switch image := r.text("container_name"); {
	case strings.HasPrefix(image, "sha256:"):
		v.Container.Bundle = image
	case image != noContainer:
		v.Container.Image = image
	}
	switch size := r.number("batch_size"); {
	case size > 0:
		v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: size}
	case size != defaultBatchSize:
		return nil, refusal("The batch size must be positive or DEFAULT_BATCH_SIZE, which is -1")
	}
	if err := checkNames(v); err != nil {
		return nil, err
	}
	if err := v.Check(); err != nil {
		return nil, refusal(err.Error())
	}
	return v, nil
}

// checkNames refuses what Clipper refuses; serving.Version.Check refuses more.
func checkNames(v *serving.Version) error {
	check := func(what, name string) error {
		if strings.ContainsAny(name, ",:") {
			return refused("Invalid %s supplied: %s. Contains one of: ',', ':'", what, name)
		}
		return nil
	}
	err := cmp.Or(check("model name", v.Model), check("model version", v.Version))
	for _, label := range v.Labels {
		err = cmp.Or(err, check("label", label))
	}
	return err
}

// checkLinked says which app that links the model of v does not take it.
func checkLinked(cat *serving.Catalog, v *serving.Version) error {
	for _, name := range slices.Sorted(maps.Keys(cat.Apps)) {
		app := cat.Apps[name]
		if slices.Contains(app.Models, v.Model) && app.InputType != v.InputType {
			return refused("Model with name '%s' is already linked to app '%s' using input type '%v'. "+
				"The input type you provided for a new version of the model, '%v', is not compatible.",
				v.Model, name, app.InputType, v.InputType)
		}
	}
	return nil
}

func (a *admin) setVersion(ctx context.Context, r request) (string, error) {
	id := versionID(r)
	done := "Successfully set model with name '" + id.Model + "' to version '" + id.Version + "'"
	return done, a.change(ctx, func(cat *serving.Catalog) ([]catalog.Change, error) {
		v := cat.Version(id)
		switch {
		case cat.Models[id.Model] == nil:
			return nil, refused("Cannot set version for nonexistent model '%s'", id.Model)
		case v == nil:
			return nil, refused("Cannot set non-existent version '%s' for model with name '%s'", id.Version, id.Model)
		}
		if err := checkLinked(cat, v); err != nil {
			return nil, err
		}
		return one(catalog.SetCurrent{ID: id}), nil
	})
}

func (a *admin) deleteVersion(ctx context.Context, r request) (string, error) {
	id := versionID(r)
	done := "Successfully deleted model with name '" + id.Model + "' and version '" + id.Version + "'"
	return done, a.change(ctx, func(cat *serving.Catalog) ([]catalog.Change, error) {
		if cat.Version(id) == nil {
			return nil, refused("model with name '%s' and version '%s' does not exist", id.Model, id.Version)
		}
		return one(catalog.DeleteVersion{ID: id}), nil
	})
}

func (a *admin) models(_ context.Context, r request) (string, error) {
	cat := a.Store.Catalog()
	ids, infos := []string{}, []modelInfo{}
	for _, name := range slices.Sorted(maps.Keys(cat.Models)) {
		m := cat.Models[name]
		for _, version := range slices.Sorted(maps.Keys(m.Versions)) {
			v := m.Versions[version]
			ids, infos = append(ids, v.ModelID.String()), append(infos, describeModel(m, v))
		}
	}
	if r.flag("verbose") {
		return answer(infos)
	}
	return answer(ids)
}

func (a *admin) model(_ context.Context, r request) (string, error) {
	cat, id := a.Store.Catalog(), versionID(r)
	if v := cat.Version(id); v != nil {
		return answer(describeModel(cat.Models[id.Model], v))
	}
	return nothing, nil
}

func versionID(r request) serving.ModelID {
	return serving.ModelID{Model: r.text("model_name"), Version: r.text("model_version")}
}
