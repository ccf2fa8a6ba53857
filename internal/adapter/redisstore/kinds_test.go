//go:build servers

package redisstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/test/wait"
)

// TestCluster and TestSentinel go through the other two clients.
func TestCluster(t *testing.T) {
	cfg := clusterConfig(t)
	t.Parallel()
	everything(t, cfg)
}

// clusterConfig is for a Cluster of one node, which refuses what touches two slots.
func clusterConfig(t testing.TB) Config {
	t.Helper()
	bus, err := servers.FreePort() // the default is where outgoing connections have theirs
	require.NoError(t, err)
	server := ownRedis(t, t.TempDir(), "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(bus))
	require.NoError(t, client(t, server).Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err())
	cfg := configOf(server)
	cfg.Cluster = true
	wait.Until(t, "cluster state", func() bool {
		return strings.Contains(client(t, server).ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	return cfg
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	master := ownRedis(t, t.TempDir())
	cfg := configOf(master)
	cfg.Addrs, cfg.Master = []string{startSentinel(t, "topsail", master.Addr)}, "topsail"
	everything(t, cfg)
}

// startSentinel starts a Sentinel, which is a redis-server with a file to write to,
// and returns its address.
func startSentinel(t testing.TB, name, master string) string {
	t.Helper()
	path, err := servers.Binary("redis-server")
	require.NoError(t, err)
	port, err := servers.FreePort()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %d\nsentinel monitor %s %s 1\n", port, name, strings.Replace(master, ":", " ", 1))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	sentinel := exec.Command(path, file, "--sentinel")
	require.NoError(t, sentinel.Start())
	t.Cleanup(func() { sentinel.Process.Kill(); sentinel.Wait() })
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// TestTLS has a Redis that wants a certificate and shows one.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pair, roots := certificate(t, dir)
	port, err := servers.FreePort()
	require.NoError(t, err)
	file := func(name string) string { return filepath.Join(dir, name) }
	server := ownRedis(t, dir, "--tls-port", fmt.Sprint(port), "--tls-cert-file", file("cert.pem"), "--tls-key-file", file("key.pem"), "--tls-ca-cert-file", file("cert.pem"))
	cfg := configOf(server)
	cfg.Addrs = []string{fmt.Sprintf("127.0.0.1:%d", port)}
	cfg.TLS = &tls.Config{RootCAs: roots}
	if got := open(t, cfg).State(); got.LastContact != (time.Time{}) || !strings.Contains(got.Away, "certificate") {
		t.Errorf("without a certificate: %+v", got)
	}
	cfg.TLS = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	everything(t, cfg)
}

// certificate makes one for 127.0.0.1, in cert.pem and key.pem.
func certificate(t testing.TB, dir string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, errors.Join(err, os.WriteFile(filepath.Join(dir, "cert.pem"), certPEM, 0o600), os.WriteFile(filepath.Join(dir, "key.pem"), keyPEM, 0o600)))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return pair, roots
}

// everything uses each script and stream once.
func everything(t *testing.T, cfg Config) {
	a, b := follower(t, cfg), follower(t, cfg)
	want := apply(t, a, putApp("a"))
	awaitCatalog(t, b, want)
	want, err := b.ApplyFenced(t.Context(), putApp("b"), 7)
	require.NoError(t, err)
	awaitCatalog(t, a, want)
	first, err := a.LeaseQueryIDs(t.Context())
	require.NoError(t, err)
	if second, err := b.LeaseQueryIDs(t.Context()); err != nil || second <= first {
		t.Errorf("got block %d after %d, and error %v", second, first, err)
	}
	require.NoError(t, a.AddDecision(t.Context(), serving.Decision{Fence: 7, To: 3}))
	if got, err := b.Decisions(t.Context(), 10, serving.ModelID{}); err != nil || len(got) != 1 || got[0].To != 3 {
		t.Errorf("got %v and error %v", got, err)
	}
	want = apply(t, a, signed(catalog.DeleteApp{Name: "b"}))
	awaitCatalog(t, b, want)
	require.NoError(t, a.AddAudit(t.Context(), serving.AuditEntry{Who: "anna", Action: "restart", Kind: "replica", Name: "r"}))
	wantLog(t, b, "restart replica r by anna", "delete app b by anna", "create app b by scheduler")
	woken := listen(t, a)
	require.NoError(t, b.Wake(t.Context(), version("m", "1").ModelID))
	if got := hear(t, woken); got != version("m", "1").ModelID {
		t.Errorf("woke %v", got)
	}
}
