//go:build bars

package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/web/api"
)

// TestVersion1ContainersScale: three replicas of a container from Clipper's time do three
// times what one does as a Nomad job, and nobody gets a default of what one could do. One that
// is asked on three connections does batches side by side. All are told to end.
func TestVersion1ContainersScale(t *testing.T) {
	c := newCluster(t)
	transport := c.root.client.Transport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	clients := &asking{t: t, url: c.edge + "/sum/predict", show: c.root.show, client: &http.Client{Transport: transport}}
	file := filepath.Join(c.dir, "topsail.toml")
	var earlier []string // replicas with fewer connections
	measure := func(replicas, connections int) float64 {
		t.Helper()
		if err := os.WriteFile(file, []byte(clipperConfig(t, c.dir, replicas, connections)), 0o600); err != nil {
			t.Fatal(err)
		}
		c.root.do("apply", "-f", file, "--yes")
		until(t, "replica with all of its connections", func() bool {
			return !slices.ContainsFunc(c.root.ready("sum:1", replicas), func(r api.Replica) bool { return slices.Contains(earlier, r.ID) })
		})
		c.root.answers("sum", fmt.Sprintf("[%d, %d.5]", replicas, connections), fmt.Sprintf("%d.5", replicas+connections))
		const each = 8 // a batch in the container and one that waits
		perSecond, others := clients.throughput(each * replicas * connections)
		t.Logf("%d replicas, %d connections to each: %.1f predictions/s, %d other answers", replicas, connections, perSecond, others)
		if float64(others) > perSecond/10 { // 1 % of 10 s
			t.Errorf("%d answers were not the model's", others)
		}
		return perSecond
	}
	one := measure(1, 1)
	three := measure(3, 1)
	t.Logf("three replicas do %.2f times what one does", three/one)
	if three < 2.8*one {
		t.Errorf("three replicas do %.1f a second, and one %.1f", three, one)
	}
	asked, others := clients.steadily(three/3, 10*time.Second)
	t.Logf("three replicas at a third of that: %d asked, %d other answers", asked, others)
	if others > 0 {
		t.Errorf("of %d queries at a third of what three replicas do, %d were not answered by the model", asked, others)
	}
	for _, r := range c.root.replicas("sum:1") {
		earlier = append(earlier, r.ID)
	}
	if three := measure(1, 3); three < 2.5*one { // of one process, with one lock for its interpreter
		t.Errorf("one replica does %.1f a second on three connections, and %.1f on one", three, one)
	}
	c.root.do("app", "delete", "sum", "--yes")
	c.root.do("model", "delete", "sum", "--yes")
	logs := filepath.Join(c.dir, "nomad-client-1", "data", "alloc", "*", "alloc", "logs", "container.stdout.0")
	said := map[string]string{} // by file: Nomad may remove those of a job that is gone
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the containers said %q", said)
		}
	})
	until(t, "four containers, all told to end", func() bool {
		all, _ := filepath.Glob(logs)
		for _, log := range all {
			if text, err := os.ReadFile(log); err == nil {
				said[log] = string(text)
			}
		}
		return len(said) >= 4 && !slices.ContainsFunc(slices.Collect(maps.Values(said)), func(text string) bool {
			return !strings.Contains(text, "told to shut down")
		})
	})
}
