//go:build system

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/wait"
	"github.com/topsail-serving/topsail/web/api"
)

const rootKey = "root-key-0123456789-0123456789"

// encrypted are flags for a process with a certificate and an administrator's key, and
// the operator who has both.
func encrypted(t *testing.T, dir string) (flags []string, o *operator) {
	t.Helper()
	ca := testca.New(t, "ours")
	pair := ca.Issue(t, "127.0.0.1")
	caFile := testca.Write(t, dir, "ca.pem", ca.PEM)
	flags = []string{
		"--tls-ca-file", caFile, "--tls-cert-file", testca.Write(t, dir, "cert.pem", pair.Cert), "--tls-key-file", testca.Write(t, dir, "key.pem", pair.Key),
		"--web-keys-file", testca.Write(t, dir, "root.keys", []byte("root:"+rootKey+"\n")),
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca.PEM)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	t.Cleanup(transport.CloseIdleConnections)
	return flags, &operator{
		t: t, env: []string{"TOPSAIL_API_KEY=" + rootKey}, flags: []string{"--ca-file", caFile}, client: &http.Client{Transport: transport},
	}
}

// newKey makes a key and is the operator who has it.
func (o *operator) newKey(dir, name string, flags ...string) *operator {
	o.t.Helper()
	file := filepath.Join(dir, name+".key")
	o.do(append([]string{"key", "create", name, "--secret-file", file}, flags...)...)
	info, err := os.Stat(file)
	secret, err2 := os.ReadFile(file)
	if err != nil || err2 != nil || info.Mode().Perm() != 0o600 {
		o.t.Fatalf("the file of the secret: %v %v %v", info, err, err2)
	}
	return o.with("TOPSAIL_API_KEY=" + strings.TrimSpace(string(secret)))
}

// TestKeysOverTLS has everybody try what they may, and what they may not.
func TestKeysOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flags, root := encrypted(t, dir)
	in := start(t, dir, "", append(flags, "--gateway-require-keys", "--gateway-keys-file", flags[len(flags)-1],
		"--web-gateway-key-file", testca.Write(t, dir, "gateway.key", []byte(rootKey)))...)
	root = root.with("TOPSAIL_ADMIN_URL=" + in.web())
	root = root.with("TOPSAIL_URL=" + get[api.Me](root, "/me").Gateway)
	if at := root.setting("TOPSAIL_URL"); !strings.HasPrefix(at, "https://") {
		t.Errorf("the gateway is at %s", at)
	}

	distrustful := *root
	distrustful.flags = nil
	distrustful.refused(5, "certificate", "app", "list")
	root.with("TOPSAIL_API_KEY=").refused(4, "--key-file", "app", "list")
	root.with("TOPSAIL_API_KEY=wrong").refused(4, "key", "app", "list")

	root.do("deploy", "sum", "--input-type", "doubles", "--app", "sums", "--slo", "2s", "--default", "-1", "--env", "PASSWORD=swordfish", "--", programs.gosum)
	root.do("app", "create", "others", "--input-type", "doubles", "--slo", "2s", "--model", "sum")
	viewer, operator := root.newKey(dir, "vic", "--role", "viewer"), root.newKey(dir, "oda", "--role", "operator")
	deployer, asker := root.newKey(dir, "deb", "--role", "deployer", "--app", "sums"), root.newKey(dir, "ann", "--role", "query", "--app", "sums")
	hasty := root.newKey(dir, "hal", "--role", "query", "--limit", "0.001", "--burst", "1")

	if out := viewer.do("app", "list"); !strings.Contains(out, "sums") || !strings.Contains(out, "others") {
		t.Errorf("the viewer sees\n%s", out)
	}
	if out := viewer.do("export"); strings.Contains(out, "swordfish") {
		t.Errorf("the viewer is shown a secret:\n%s", out)
	}
	for _, args := range [][]string{
		{"version", "scale", "sum:1", "2"}, {"app", "set", "sums", "--slo", "3s"}, {"key", "list"}, {"audit"}, {"app", "delete", "sums", "--yes"},
	} {
		viewer.refused(4, "", args...)
		asker.refused(4, "", args...)
	}
	asker.refused(4, "", "app", "list")

	operator.do("version", "scale", "sum:1", "2")
	operator.do("replica", "restart", root.ready("sum:1", 2)[0].ID)
	operator.refused(4, "", "app", "set", "sums", "--slo", "3s")
	operator.refused(4, "", "key", "create", "eve", "--role", "admin")

	deployer.do("app", "set", "sums", "--slo", "3s")
	deployer.refused(3, "others", "app", "get", "others")
	deployer.refused(4, "", "app", "create", "third", "--input-type", "doubles")
	deployer.refused(4, "", "audit")
	if a := get[serving.App](root, "/apps/sums"); a.SLO.Std() != 3*time.Second {
		t.Errorf("the app is %+v", a)
	}

	root.with("TOPSAIL_API_KEY=").refused(4, "key", "predict", "sums", "[1]")
	asker.answers("sums", "[1, 2.5]", "3.5")
	asker.refused(4, "", "predict", "others", "[1]")
	hasty.do("predict", "others", "[1]")
	hasty.refused(1, "send it again in", "predict", "others", "[1]")

	if status, text := operator.send(http.MethodPost, "/apps/sums/try", `{"input": [1, 2]}`); status != http.StatusOK || !bytes.Contains(text, []byte(`"stages":[{`)) {
		t.Errorf("a trial has status %d: %s", status, text)
	}

	root.do("key", "revoke", "ann", "--yes")
	root.do("key", "revoke", "vic", "--yes")
	wait.Until(t, "end of the keys that were revoked", func() bool {
		_, _, asked := asker.run("predict", "sums", "[1, 2.5]")
		_, _, seen := viewer.run("app", "list")
		return asked == 4 && seen == 4
	})

	who := map[string]string{}
	for _, e := range list[serving.AuditEntry](root, "/audit") {
		who[e.Action+" "+e.Kind+" "+e.Name] += e.Who + " "
	}
	for what, want := range map[string]string{
		"create app sums": "root ", "update app sums": "deb ", "update version sum:1": "oda ",
	} {
		if got := who[what]; got != want {
			t.Errorf("%s was done by %q, want %q; all is %v", what, got, want, who)
		}
	}
	keptSecret(t, in, root, viewer, operator, deployer, asker, hasty)
}

// keptSecret says where a secret can be found that is kept nowhere.
func keptSecret(t *testing.T, in *instance, all ...*operator) {
	t.Helper()
	if err := in.stop(os.Interrupt); err != nil {
		t.Errorf("it ended with %v", err)
	}
	var kept bytes.Buffer
	if err := filepath.Walk(filepath.Join(in.dir, "data"), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			var content []byte
			content, err = os.ReadFile(path)
			kept.Write(content)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		secret := o.setting("TOPSAIL_API_KEY")
		if bytes.Contains(kept.Bytes(), []byte(secret)) || strings.Contains(in.output(), secret) {
			t.Errorf("%s is in the data folder or in the log", secret)
		}
	}
}
