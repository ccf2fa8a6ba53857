package config

import (
	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
)

// policyLinks checks that what the policy of the app at path names is in the file,
// which has these versions, and these current ones of its models.
func (l *loader) policyLinks(path string, a *serving.App, current map[string]*serving.Version, versions map[serving.ModelID]bool) {
	l.checked(path, "", a.CheckLinks())
	l.checked(path, "", a.CheckVersions(func(id serving.ModelID) bool {
		return current[id.Model] == nil || versions[id] // a link to no model is reported already
	}))
	// No app links the model that decides, and so nothing else looks at it.
	path += ".policy.model"
	if a.Policy.Kind != serving.PolicyCustom || a.Policy.Model == "" || l.reported(path) {
		return
	}
	switch v := current[a.Policy.Model]; {
	case v == nil:
		l.wrong(path, "app %q: policy: model %q is not in this file%s", a.Name, a.Policy.Model, schema.DidYouMean(a.Policy.Model, keys(current)))
	case v.InputType != serving.Strings && v.InputType != 0:
		l.wrong(path, "app %q: policy: model %q decides and must take strings, but it takes %v", a.Name, a.Policy.Model, v.InputType)
	}
}
