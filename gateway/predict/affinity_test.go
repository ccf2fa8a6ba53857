package predict

import (
	"fmt"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// Queries of one affinity go to one replica, and those of many to all; when the owner
// goes, another one takes its place.
func TestAffinity(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(func(a *serving.App) { a.Cache.Off = true }, m1)
		replicas := []*fake{t.replica("r0", echoes(0), m1), t.replica("r1", echoes(0), m1), t.replica("r2", echoes(0), m1)}
		ask := func(n int, affinity string) (asked []int) {
			before := make([]int, len(replicas))
			for i, r := range replicas {
				before[i] = len(r.questions())
			}
			for i := range n {
				q := newQuery(float64(i))
				q.Affinity.Key = affinity
				if affinity == "" {
					q.Affinity.Key = fmt.Sprint("key ", i)
				}
				p, _ := t.predict(q)
				t.wantOutput(p, float64(i))
			}
			for i, r := range replicas {
				asked = append(asked, len(r.questions())-before[i])
			}
			return asked
		}
		owner := -1
		for i, n := range ask(30, "wine") {
			if n == 30 {
				owner = i
			}
		}
		if owner < 0 {
			t.Fatal("queries of one affinity went to several replicas")
		}
		for i, n := range ask(90, "") {
			if n < 15 {
				t.Errorf("replica %d got %d of 90 queries of as many affinities", i, n)
			}
		}
		t.stop(replicas[owner])
		if asked := ask(30, "wine"); asked[owner] != 0 {
			t.Errorf("a replica that is gone was asked: %v", asked)
		}
	})
}
