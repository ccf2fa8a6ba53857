package api

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/problem"
)

// replaceContract is the parameter of changes after which clients may have to send other inputs.
const replaceContract = "replace_contract"

// keepsContract refuses to make a version, or none, current that takes inputs of another length than the current one, while apps use
// the model: what their clients send would be refused from then on. Another type or other names are refused by the rules of
// the catalog, because apps have them, too.
func keepsContract(cat *serving.Catalog, next *serving.Version) error {
	if next == nil {
		return nil
	}
	apps := asking(cat, next.Model)
	now := currentOf(cat, next.Model)
	if len(apps) == 0 || sameLength(now, next) {
		return nil
	}
	return problem.New(http.StatusConflict, "contract", fmt.Sprintf(
		"%s with inputs of length %d, which version %q of model %q takes, and this one takes %d: their clients would be refused. "+
			"Register it as another model, or with %s=true if all clients send the new length; a rollback brings the other back",
		uses(apps), now.InputLength, now.Version, next.Model, next.InputLength, replaceContract))
}

// keepsContractAfter is keepsContract of the version of a model that changes make current.
func keepsContractAfter(cat *serving.Catalog, changes []catalog.Change, model string) error {
	after, err := catalog.Apply(cat, catalog.All(changes), 0)
	if err != nil {
		return err
	}
	return keepsContract(cat, currentOf(after, model))
}

// uses says that apps are used.
func uses(apps []string) string {
	if len(apps) == 1 {
		return appList(apps) + " is used"
	}
	return appList(apps) + " are used"
}

// keepsContractOfPins is the same of versions that the policy of an app names newly: they answer beside the current one.
func keepsContractOfPins(cat *serving.Catalog, before, app *serving.App) error {
	var known []serving.ModelID
	if before != nil {
		known = before.Pins()
	}
	for _, id := range app.Pins() {
		v, now := cat.Version(id), currentOf(cat, id.Model)
		if v == nil || slices.Contains(known, id) || sameLength(now, v) {
			continue
		}
		return problem.New(http.StatusConflict, "contract", fmt.Sprintf(
			"the current version %q of model %q takes inputs of length %d, and version %q takes %d: one policy cannot ask both",
			now.Version, id.Model, now.InputLength, id.Version, v.InputLength))
	}
	return nil
}

func currentOf(cat *serving.Catalog, model string) *serving.Version {
	m := cat.Models[model]
	if m == nil {
		return nil
	}
	return m.Versions[m.Current]
}

// sameLength says whether inputs for one version may be for another, too. A length of 0 is any.
func sameLength(a, b *serving.Version) bool {
	return a == nil || a.InputLength == 0 || b.InputLength == 0 || a.InputLength == b.InputLength || a.InputType != b.InputType
}
