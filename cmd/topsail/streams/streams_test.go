package streams

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream/records"
	"github.com/topsail-serving/topsail/test/brokers"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/test/wait"
)

// echo predicts the text itself.
type echo struct{}

func (echo) App(name string) (*serving.App, error) {
	return &serving.App{Name: name, InputType: serving.Strings}, nil
}

func (echo) Capacity(string) (int, time.Duration) { return 1, 0 }

func (echo) Predict(_ context.Context, qs ...serving.Query) ([]serving.Prediction, error) {
	return []serving.Prediction{{Output: serving.AppendText(nil, qs[0].Input.Data)}}, nil
}

func store(t *testing.T) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// based is a process with a configuration.
func based(t *testing.T, dir, text string) *role.Base {
	t.Helper()
	file := filepath.Join(dir, "topsail.toml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	cfg, err := config.Load(file, []string{"HOME=" + dir}, nil)
	require.NoError(t, err)
	return role.New(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// TestGettingIntoRedis with a password and certificates: into the one of [redis], and
// into one of the stream's own.
func TestGettingIntoRedis(t *testing.T) {
	dir := t.TempDir()
	ca := testca.New(t, "authority")
	pair := ca.Issue(t, "localhost")
	cert, key, authority := testca.Write(t, dir, "cert.pem", pair.Cert), testca.Write(t, dir, "key.pem", pair.Key), testca.Write(t, dir, "ca.pem", ca.PEM)
	testca.Write(t, dir, "password", []byte("secret"))
	port, err := servers.FreePorts(2)
	require.NoError(t, err)
	server, err := servers.Redis(dir, port, "--requirepass", "secret",
		"--tls-port", fmt.Sprint(port+1), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", authority)
	require.NoError(t, err)
	t.Cleanup(server.Kill)
	require.NoError(t, server.Start(t.Context()))
	redis := fmt.Sprintf("addrs = ['localhost:%d']\npassword_file = 'password'\ntls = true\n", port+1)
	base := based(t, dir, fmt.Sprintf("[tls]\ncert_file = %q\nkey_file = %q\nca_file = %q\n[redis]\n%s", cert, key, authority, redis)+
		"[[stream]]\nname = 'common'\napp = 'echo'\ninput = ['a.in']\noutput = 'a.out'\ndead_letter = 'a.dead'\nbroker = 'redis'\n"+
		"[[stream]]\nname = 'own'\napp = 'echo'\ninput = ['b.in']\noutput = 'b.out'\ndead_letter = 'b.dead'\nbroker = 'redis'\n"+redis)
	set, err := Open(base, Options{Name: "process", Scorer: echo{}, Catalog: store(t)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := set.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()

	tls, err := access.TLS{CertFile: cert, KeyFile: key, CAFile: authority}.Client()
	if err != nil {
		t.Fatal(err)
	}
	broker := brokers.Redis{
		Addrs: []string{fmt.Sprintf("localhost:%d", port+1)}, TLS: tls, Password: func() (string, error) { return "secret", nil },
	}
	for _, name := range []string{"a", "b"} {
		record := serving.StreamMessage{Stream: name + ".in", Value: []byte(`{"uuid": "1", "input": "` + name + `"}`)}
		if err := broker.Write(t.Context(), []serving.StreamMessage{record}); err != nil {
			t.Fatal(err)
		}
		r, err := broker.Follow(name + ".out")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		waiting, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		results, err := r.Next(waiting, 10)
		if err != nil || len(results) != 1 || !strings.Contains(string(results[0].Value), `"output":"`+name+`"`) {
			t.Errorf("results of %s: %v, %v", name, results, err)
		}
	}
	if err := set.Ready(); err != nil {
		t.Error(err)
	}
	// What is committed can be read before it is counted.
	var page *httptest.ResponseRecorder
	counted := func() bool {
		page = httptest.NewRecorder()
		set.Page().Handler.ServeHTTP(page, httptest.NewRequest("GET", "/streams", nil))
		var shown struct{ Streams []records.Status }
		err := json.Unmarshal(page.Body.Bytes(), &shown)
		return err == nil && len(shown.Streams) == 2 && shown.Streams[0].Name == "common" && shown.Streams[1].Results == 1
	}
	wait.Until(t, "both streams and their results on the page", counted, func() string { return page.Body.String() })
	if set.Page().Path != "/streams" || strings.Contains(page.Body.String(), "secret") {
		t.Errorf("the page is %s", page.Body)
	}
}

// TestWhatCannotBeOpened is said with the name of its stream.
func TestWhatCannotBeOpened(t *testing.T) {
	const both = "[[stream]]\nname = 'good'\napp = 'a'\ninput = ['in']\noutput = 'out'\ndead_letter = 'dead'\nbroker = 'redis'\n" +
		"[[stream]]\nname = 'bad'\napp = 'a'\ninput = ['in']\noutput = 'out'\ndead_letter = 'dead'\nbroker = "
	for text, want := range map[string]string{
		"'kafka'\naddrs = ['a:1']\nusername = 'u'\npassword_file = 'missing'\nmechanism = 'PLAIN'\n":  "missing",
		"'redis'\naddrs = ['a:1']\npassword_file = 'missing'\n":                                       "missing",
		"'kafka'\naddrs = ['a:1']\nusername = 'u'\npassword_file = 'password'\nmechanism = 'PLAIN'\n": "PLAIN shows the password",
		"'redis'\naddrs = ['a:1']\ncluster = true\ninput = ['a', 'b']\n":                              "hash tag",
	} {
		dir := t.TempDir()
		testca.Write(t, dir, "password", []byte("secret"))
		config := both + text
		if strings.Contains(text, "input") {
			config = strings.Replace(both, "name = 'bad'\napp = 'a'\ninput = ['in']\n", "name = 'bad'\napp = 'a'\n", 1) + text
		}
		_, err := Open(based(t, dir, config), Options{Name: "process", Scorer: echo{}, Catalog: store(t)})
		if err == nil || !strings.Contains(err.Error(), `stream "bad": `) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	set, err := Open(based(t, t.TempDir(), ""), Options{Name: "process", Scorer: echo{}, Catalog: store(t)})
	ended, end := context.WithCancel(t.Context())
	end()
	if err != nil || set.Run(ended) != nil || set.Ready() != nil {
		t.Errorf("without streams: %v", err)
	}
}
