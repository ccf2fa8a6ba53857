package predict

import (
	"slices"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// A model without a replica is not asked, and missing all the same where the policy
// asks everyone; where it asks one, nobody misses the others.
func TestWhoIsGoneIsMissing(t *testing.T) {
	for kind, want := range map[string][]serving.ModelID{
		serving.PolicyVote:     {b1},
		serving.PolicyBest:     {b1},
		serving.PolicyThompson: nil,
		serving.PolicyCascade:  nil,
	} {
		bubble(t, func(t *rig) {
			t.replica("a", echoes(0), a1)
			t.replica("c", echoes(0), c1)
			t.links(func(a *serving.App) { a.Policy.Kind = kind }, a1, b1, c1)
			if p, _ := t.predict(newQuery(1)); p.Default || !slices.Equal(p.Missing, want) || p.Shed != nil {
				t.Errorf("%s: missing %v of %+v, want %v", kind, p.Missing, p, want)
			}
		})
	}
	bubble(t, func(t *rig) {
		t.replica("a", echoes(0), a1)
		t.links(func(a *serving.App) { a.Policy = serving.PolicySpec{Kind: serving.PolicyVote, Most: 1} }, a1, b1)
		if p, _ := t.predict(newQuery(1)); p.Missing != nil {
			t.Errorf("of one that is asked, missing %v", p.Missing)
		}
	})
}
