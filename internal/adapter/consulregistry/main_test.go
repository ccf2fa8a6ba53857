//go:build servers

package consulregistry

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

var (
	shared *servers.Server // of tests that leave it running
	names  atomic.Int64
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "12") // they wait more than they work
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "consul")
	if err == nil {
		defer os.RemoveAll(dir)
		shared, err = launch(dir, servers.ConsulOptions{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Kill()
	return m.Run()
}

func launch(dir string, opt servers.ConsulOptions) (*servers.Server, error) {
	port, err := servers.FreePorts(5)
	if err != nil {
		return nil, err
	}
	s, err := servers.Consul("consul", dir, port, opt)
	if err != nil {
		return nil, err
	}
	return s, s.Start(context.Background())
}

// own starts a Consul for one test. wipe forgets its data, while it is down.
func own(t *testing.T) (s *servers.Server, wipe func()) {
	t.Helper()
	dir := t.TempDir()
	s, err := launch(dir, servers.ConsulOptions{})
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	return s, func() { os.RemoveAll(filepath.Join(dir, "data")) }
}

// fresh is a name that no other test has.
func fresh(t *testing.T) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()))
	return fmt.Sprintf("%.40s-%d", name, names.Add(1))
}
