//go:build servers

package redisstream

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/servers"
)

// everything goes once through what the package does.
func everything(t *testing.T, b Broker) {
	t.Helper()
	for _, ordered := range []bool{false, true} {
		tag := "{" + fresh() + "}"
		one, two, out := tag+"one", tag+"two", tag+"out"
		write(t, b, slices.Concat(numbered(one, 30), numbered(two, 30))...)
		c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{one, two}, Ordered: ordered})
		for done := 0; done < 60; {
			records := poll(t, c, 25)
			if err := try(t.Context(), c, records, numbered(out, len(records))); err != nil {
				t.Fatal(err)
			}
			done += len(records)
		}
		if n := len(read(t, b, out)); n != 60 {
			t.Errorf("%d results", n)
		}
		nothing(t, c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A Cluster of one node refuses what touches two slots.
func TestCluster(t *testing.T) {
	t.Parallel()
	bus, err := servers.FreePort() // the default is where outgoing connections have theirs
	if err != nil {
		t.Fatal(err)
	}
	server := own(t, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(bus))
	if err := client(t, server).Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); !strings.Contains(client(t, server).ClusterInfo(t.Context()).Val(), "cluster_state:ok"); {
		if time.Now().After(end) {
			t.Fatal("the cluster does not come about")
		}
		time.Sleep(5 * time.Millisecond) // the tick of a poll
	}
	b := broker(t, server.Addr)
	b.Cluster = true
	everything(t, b)

	write(t, b, numbered("{wine}:in", 1)...)
	c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{"{wine}:in"}})
	records := poll(t, c, 1)
	if err := try(t.Context(), c, records, numbered("out", 1)); err == nil || !strings.Contains(err.Error(), "{wine}:out") {
		t.Errorf("results in another slot: %v", err)
	}
	if err := try(t.Context(), c, records, []serving.StreamMessage{{Stream: "{wine}:out"}}); err != nil {
		t.Error(err)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	master := own(t)
	path, err := servers.Binary("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %d\nsentinel monitor topsail %s 1\n", port, strings.Replace(master.Addr, ":", " ", 1))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := exec.Command(path, file, "--sentinel")
	if err := sentinel.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sentinel.Process.Kill(); sentinel.Wait() })
	b := broker(t, fmt.Sprintf("127.0.0.1:%d", port))
	b.Master = "topsail"
	c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{"s"}})
	for end := time.Now().Add(patience); ; { // it takes a moment to start
		if err := c.join(t.Context()); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	everything(t, b)
}

func TestTLSAndPassword(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := testca.New(t, "authority")
	pair := ca.Issue(t, "127.0.0.1")
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	server := own(t, "--requirepass", "secret", "--tls-port", fmt.Sprint(port), "--tls-auth-clients", "no",
		"--tls-cert-file", testca.Write(t, dir, "cert.pem", pair.Cert), "--tls-key-file", testca.Write(t, dir, "key.pem", pair.Key),
		"--tls-ca-cert-file", testca.Write(t, dir, "ca.pem", ca.PEM))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	b := broker(t, fmt.Sprintf("127.0.0.1:%d", port))
	b.TLS = &tls.Config{RootCAs: roots}
	b.Password = func() (string, error) { return "secret", nil }
	everything(t, b)
	if !server.Running() {
		t.Error("it died")
	}
}
