package catalog_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// judged is an app with a policy of its own that links models m and n.
func judged() serving.App {
	a := app("a", "m", "n")
	a.OutputType, a.Weight = serving.OutputNumber, 3
	a.Policy = serving.PolicySpec{
		Kind: serving.PolicyCustom, Model: "judge", Models: []string{"n", "m:1"}, Costs: map[string]float64{"m": 0.1}, WithinMicros: 500,
		Loss: serving.LossAbsolute, Scale: 5,
		Fallback: &serving.PolicySpec{Kind: serving.PolicyMean, Weights: map[string]float64{"m": 1, "n": 2}},
	}
	return a
}

func withModels(t *testing.T) *serving.Catalog {
	return must(t, &serving.Catalog{}, put(version("m", "1")), put(version("m", "2")), put(version("n", "1")), put(version("judge", "1")))
}

func TestPolicyDocuments(t *testing.T) {
	given := judged()
	cat := must(t, withModels(t), catalog.PutApp{App: given})
	docs, err := catalog.Diff(&serving.Catalog{}, cat)
	require.NoError(t, err)
	read, err := catalog.Decode(cat.Revision, slices.Values(docs))
	if err != nil || !reflect.DeepEqual(read, cat) {
		t.Fatalf("read %+v with error %v, want %+v", read, err, cat)
	}
	if got := read.Apps["a"]; !reflect.DeepEqual(got.Policy, given.Policy) || got.OutputType != given.OutputType || got.Weight != given.Weight {
		t.Errorf("got %+v, want %+v", got, given)
	}
}

func TestPolicyIsTheCatalogs(t *testing.T) {
	given := judged()
	cat := must(t, withModels(t), catalog.PutApp{App: given})
	given.Policy.Models[0], given.Policy.Costs["m"], given.Policy.Fallback.Kind = "x", 9, serving.PolicyVote
	if want := judged(); !reflect.DeepEqual(cat.Apps["a"].Policy, want.Policy) {
		t.Errorf("the caller has changed the policy to %s", cat.Apps["a"].Policy.String())
	}
	if again := must(t, cat, catalog.PutApp{App: judged()}); again != cat {
		t.Error("the same app again is a change")
	}
	given = judged()
	given.Policy.Fallback.Weights["n"] = 3
	changed := must(t, cat, catalog.PutApp{App: given})
	docs, err := catalog.Diff(cat, changed)
	if err != nil || len(docs) != 1 || docs[0].Key != "a" {
		t.Errorf("another weight in the fallback writes %v, error %v", docs, err)
	}
}

func TestMergePolicies(t *testing.T) {
	other := judged()
	other.Policy.WithinMicros++
	models := []serving.Version{version("m", "1"), version("m", "2"), version("n", "1"), version("judge", "1")}
	run(t, []mergeCase{{
		name:  "the same policy",
		first: file{apps: []serving.App{judged()}, versions: models},
		file:  file{apps: []serving.App{judged()}, versions: models},
		want:  "a(file)->m,n m:1(file),2(file)* n:1(file)*",
	}, {
		name:  "another option",
		first: file{apps: []serving.App{judged()}, versions: models},
		file:  file{apps: []serving.App{other}, versions: models},
		want:  "a(file)->m,n m:1(file),2(file)* n:1(file)*",
		notes: `INFO app "a" is now as the file defines it`,
	}})
}

// What a policy names may go: who is not there is not asked.
func TestNamedModelsMayGo(t *testing.T) {
	cat := must(t, withModels(t), catalog.PutApp{App: judged()})
	cat = must(t, cat,
		catalog.Unlink{App: "a", Model: "n"},
		catalog.DeleteVersion{ID: id("m", "1")},
		catalog.DeleteVersion{ID: id("m", "2")},
		catalog.DeleteVersion{ID: id("n", "1")},
		catalog.DeleteVersion{ID: id("judge", "1")})
	if got, want := cat.Apps["a"], judged(); len(got.Models) != 0 || !reflect.DeepEqual(got.Policy, want.Policy) {
		t.Errorf("got links %v and policy %s", got.Models, got.Policy.String())
	}
}

func TestPoliciesAreChecked(t *testing.T) {
	split := app("split", "m")
	split.Policy = serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "2"}
	cat := must(t, withModels(t), catalog.PutApp{App: split})
	cat = must(t, cat, catalog.PutApp{App: judged()})
	labels, words := judged(), app("b")
	labels.OutputType = serving.OutputLabel
	words.InputType, words.Policy.Kind = serving.Strings, serving.PolicyLinUCB
	for want, change := range map[string]catalog.Change{
		`"versions" is for apps that link one model, and this one links 2`: catalog.Link{App: "split", Model: "n"},
		`model "judge" decides, and cannot be linked to the app as well`:   catalog.Link{App: "a", Model: "judge"},
		`fallback: kind "mean" takes outputs that are number, vector`:      catalog.PutApp{App: labels},
		`kind "linucb" takes ints, floats or doubles`:                      catalog.PutApp{App: words, Create: true},
	} {
		next, err := catalog.Apply(cat, change, 0)
		if err == nil || next != nil || !strings.HasPrefix(err.Error(), "invalid: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, error %v, want %s", next, err, want)
		}
	}
}
