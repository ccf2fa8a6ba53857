package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Half of the users get answers of version 2, until it turns out worse than version 1. From then on
// no query reaches it, and the app's state says why. A version that fails or is late costs no client
// an answer, one that is wrong as many as it takes to judge it.
func TestACanary(t *testing.T) {
	for name, canary := range map[string]struct {
		model  model
		takes  time.Duration
		wrong  int // answers
		reason string
		shares [2]float64
	}{
		"well":    {says("cat"), 0, 0, "", [2]float64{0.5, 0.5}},
		"failing": {fails("broken"), 0, 0, "failed or came late, against 0 %", [2]float64{1, 0}},
		"late":    {says("cat"), time.Second, 0, "failed or came late, against 0 %", [2]float64{1, 0}},
		"wrong":   {says("dog"), 0, 20, "mean loss of its last 20 answers is 1.00, against 0.00", [2]float64{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *story) {
				asked := 0
				s.replica(s.version("m", "1"), says("cat"))
				s.replica(s.version("m", "2"), canary.model.after(canary.takes).counted(&asked))
				policy := serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "2", Share: 0.5, Sticky: true}
				s.app("app", policy, "m").SLO = serving.Duration(400 * time.Millisecond)
				store := s.open(t.TempDir())
				e := s.gateway(store)
				wrong := 0
				for user := range 60 {
					a := e.ask("app", fmt.Sprintf(`{"input":[%d],"uid":%d}`, user, user))
					if a.Output != "cat" {
						wrong++
					}
					e.teach("app", fmt.Sprintf(`{"query_id":%d,"label":"cat"}`, a.QueryID))
				}
				settle()
				l := s.learned(store, "app", "")
				if wrong != canary.wrong || !strings.Contains(l.Note, canary.reason) || (l.Note == "") != (canary.reason == "") {
					t.Errorf("%d answers were wrong, and the note is %q, want %d and %q", wrong, l.Note, canary.wrong, canary.reason)
				}
				if shares := [2]float64{l.Models[0].Share, l.Models[1].Share}; shares != canary.shares {
					t.Errorf("the shares are %v, want %v", shares, canary.shares)
				}
				before := asked
				for user := range 50 {
					e.wants("app", fmt.Sprintf(`{"input":[%d],"uid":%d,"no_cache":true}`, user, user), "cat")
				}
				if goesOn := asked > before; goesOn != (canary.reason == "") {
					t.Errorf("of 50 more queries %d reach version 2, and the note is %q", asked-before, l.Note)
				}
			})
		})
	}
}
