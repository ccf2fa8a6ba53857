package serving

import (
	"slices"
	"testing"
)

func TestPolicyNames(t *testing.T) {
	p := PolicySpec{
		Kind: PolicyCustom, Model: "judge", Models: []string{"b", "a"}, Costs: map[string]float64{"c": 1, "a": 2},
		Fallback: &PolicySpec{Kind: PolicyMean, Weights: map[string]float64{"b:2": 1, "d": 1}},
	}
	if got, want := p.Names(), []string{"a", "b", "b:2", "c", "d", "judge"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	split := PolicySpec{Kind: PolicyVersions, Weights: map[string]float64{"1": 1}, Canary: "2", Costs: map[string]float64{"m": 1}}
	if got := split.Names(); !slices.Equal(got, []string{"m"}) {
		t.Errorf("versions are taken for models: %v", got)
	}
}

func TestCheckLinks(t *testing.T) {
	a := appWith(PolicySpec{
		Kind: PolicyCustom, Model: "judge", Models: []string{"a:7", "x:1"}, Costs: map[string]float64{"y": 1, "b": 1},
		Fallback: &PolicySpec{Kind: PolicyVote, Models: []string{"c", "z"}},
	})
	const want = `app "wine": policy: models names model "x", and the app does not link it: link it or leave it out
app "wine": policy: costs names model "y", and the app does not link it: link it or leave it out
app "wine": policy: fallback: models names model "z", and the app does not link it: link it or leave it out`
	if err := a.CheckLinks(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	a.Models = append(a.Models, "x", "y", "z")
	if err := a.CheckLinks(); err != nil {
		t.Errorf("all are linked: %v", err)
	}
	if err := appWith(PolicySpec{}).CheckLinks(); err != nil {
		t.Errorf("nothing is named: %v", err)
	}
}

func TestCheckVersions(t *testing.T) {
	exists := func(id ModelID) bool { return id.Version == "1" }
	a := appWith(PolicySpec{
		Kind: PolicyCustom, Model: "judge", Models: []string{"a:1", "b:2", "not-linked:2", "c"},
		Fallback: &PolicySpec{Kind: PolicySingle, Model: "c:3"},
	})
	const want = `app "wine": policy: models names version "2" of model "b", which does not exist
app "wine": policy: fallback: model names version "3" of model "c", which does not exist`
	if err := a.CheckVersions(exists); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	split := versionsOf(PolicySpec{Weights: map[string]float64{"1": 1, "5": 1, "4": 1}})
	const wantSplit = `app "wine": policy: weights names version "4" of model "a", which does not exist
app "wine": policy: weights names version "5" of model "a", which does not exist`
	if err := split.CheckVersions(exists); err == nil || err.Error() != wantSplit {
		t.Errorf("got\n%v\nwant\n%s", err, wantSplit)
	}
	canary := versionsOf(PolicySpec{Canary: "2"})
	if err := canary.CheckVersions(exists); err == nil || err.Error() != `app "wine": policy: canary names version "2" of model "a", which does not exist` {
		t.Errorf("a canary that does not exist: %v", err)
	}
	canary.Policy.Canary = "1"
	if err := canary.CheckVersions(exists); err != nil {
		t.Errorf("a canary that exists: %v", err)
	}
	canary.Models = nil
	canary.Policy.Canary = "2"
	if err := canary.CheckVersions(exists); err != nil {
		t.Errorf("without a model there are no versions to miss: %v", err)
	}
}
