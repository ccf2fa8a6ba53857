//go:build servers

package influxdb

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// shared is the InfluxDB 1.8 of all tests that do no harm to it, from the first of
// them on.
var shared struct {
	start sync.Once
	dir   string
	*servers.Server
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.Server != nil {
		shared.Stop()
	}
	os.RemoveAll(shared.dir)
	os.Exit(code)
}

// server is the address of the shared InfluxDB.
func server(t testing.TB) string {
	t.Helper()
	shared.start.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "influxdb"); shared.err == nil {
			shared.Server, shared.err = start(shared.dir)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.Addr
}

func start(dir string) (*servers.Server, error) {
	port, err := servers.FreePorts(2)
	if err != nil {
		return nil, err
	}
	s, err := servers.InfluxDB(dir, port)
	if err != nil {
		return nil, err
	}
	return s, s.Start(context.Background())
}

var databases atomic.Int64

// database makes one of its own for a test, and says its bucket.
func database(t testing.TB, addr string) string {
	t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	resp, err := http.PostForm("http://"+addr+"/query", url.Values{"q": {`CREATE DATABASE "` + name + `"`}})
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || strings.Contains(string(body), "error") {
		t.Fatalf("create database: %s: %s, %v", resp.Status, body, err)
	}
	return name + "/autogen"
}

func TestDemandContract(t *testing.T) {
	t.Parallel()
	contract.Demand(t, func(t *testing.T) contract.DemandStore {
		return open(t, Config{URL: "http://" + server(t), Bucket: database(t, server(t)), Log: testLog(t)})
	})
}
