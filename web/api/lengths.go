package api

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/problem"
	"github.com/topsail-serving/topsail/web/rest"
)

// replaceContract is the parameter of changes after which clients may have to send other inputs.
const replaceContract = "replace_contract"

// keepsContract refuses changes after which clients of apps would have to send inputs of another length, unless the
// request says that they may: what they send would be refused from then on. Another type or other names are refused
// by the rules of the catalog, because apps have them, too.
func keepsContract(r *http.Request, cat *serving.Catalog, changes []catalog.Change) error {
	may, err := rest.Flag(r, replaceContract)
	if err != nil || may {
		return err
	}
	after, err := catalog.Apply(cat, catalog.All(changes), 0)
	if err != nil {
		return err
	}
	broken := catalog.OtherLengths(cat, after)
	if len(broken) == 0 {
		return nil
	}
	var apps []string
	for _, b := range broken {
		apps = append(apps, b.App)
	}
	was, now := broken[0].Was, broken[0].Now
	return problem.New(http.StatusConflict, "contract", fmt.Sprintf(
		"%s with inputs of length %d, which version %q of model %q takes, and version %q of model %q takes %d: their clients would be refused. "+
			"Use another model and app for it, or %s=true if all clients send the new length; a rollback brings the other back",
		uses(apps), was.InputLength, was.Version, was.Model, now.Version, now.Model, now.InputLength, replaceContract))
}

// keeping is a plan whose changes keep the contract of apps.
func keeping(r *http.Request, plan func(view) ([]catalog.Change, error)) func(view) ([]catalog.Change, error) {
	return func(v view) ([]catalog.Change, error) {
		changes, err := plan(v)
		if err != nil {
			return nil, err
		}
		return changes, keepsContract(r, v.cat, changes)
	}
}

// uses says that apps are used.
func uses(apps []string) string {
	if len(apps) == 1 {
		return appList(apps) + " is used"
	}
	return appList(apps) + " are used"
}

// keepsContractOfPins refuses versions that take other inputs, among those that the policy of an app names newly: they answer beside the current one.
func keepsContractOfPins(cat *serving.Catalog, before, app *serving.App) error {
	var known []serving.ModelID
	if before != nil {
		known = before.Pins()
	}
	for _, id := range app.Pins() {
		v, now := cat.Version(id), currentOf(cat, id.Model)
		if v == nil || slices.Contains(known, id) {
			continue
		}
		if err := app.Signature.Accepts(v.Signature); err != nil {
			return problem.New(http.StatusConflict, "contract", fmt.Sprintf("version %q of model %q does not take what clients of app %q send: %v", id.Version, id.Model, app.Name, err))
		}
		if err := app.CheckOutputs(v); err != nil {
			return problem.New(http.StatusConflict, "contract", fmt.Sprintf("version %q of model %q does not suit app %q: %v", id.Version, id.Model, app.Name, err))
		}
		if sameLength(now, v) {
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
