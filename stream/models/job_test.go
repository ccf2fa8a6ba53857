package models

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"topsail/serving"
	"topsail/serving/bundle"
	"topsail/serving/catalog"
)

func TestModelsAreDeployed(t *testing.T) {
	w := newWorld(t)
	w.app("tasting")
	w.run(nil)
	first := source("1")
	first.Description, first.Apps, first.Example, first.InputLength = "the first", []string{"tasting"}, "[1, 2]", 2
	w.write(message("a", first))
	w.settle()
	second := source("2")
	second.KeepCurrent = true
	u := Update{UUID: "b", Sequence: 7, Model: second}
	w.write(serving.StreamMessage{Stream: "in", Key: []byte("wine"), Value: u.AppendProtobuf(nil)})
	w.settle()
	w.want(outcome{"a", Deployed}, outcome{"b", Deployed})

	cat := w.store.Catalog()
	v := cat.Version(serving.ModelID{Model: "wine", Version: "1"})
	if v == nil || v.Description != "the first" || v.InputType != serving.Doubles || v.InputLength != 2 || v.Container.Bundle == "" || v.Replicas != 1 {
		t.Fatalf("version 1 is %+v", v)
	}
	if w.current("wine") != "1" || !slices.Equal(cat.Apps["tasting"].Models, []string{"wine"}) {
		t.Errorf("version %q is current, and the app asks %v", w.current("wine"), cat.Apps["tasting"].Models)
	}
	made, ok := parseOrigin(cat.Version(serving.ModelID{Model: "wine", Version: "2"}).Labels)
	if !ok || made.job != "models" || made.update != "b" || made.stream != "in" || made.place != "0/1" || made.sequence != 7 || !made.kept {
		t.Errorf("version 2 is of %+v", made)
	}
	out := w.read("out")
	ack, err := ParseAcknowledgement(out[0].Value, 2)
	if err != nil || ack.Bundle != v.Container.Bundle || ack.Model != "wine" || ack.Version != "1" || string(out[0].Key) != "wine" {
		t.Errorf("%s: %+v, %v", out[0].Value, ack, err)
	}
	if s := w.job.Status(); s.Updates != 2 || s.Outcomes[Deployed] != 2 || s.Trouble != "" || s.InHand != 0 || s.LastPlace != "in 0/1" {
		t.Errorf("status %+v", s)
	}
}

// TestTheSameAgain changes nothing, and another content under the name of a version is refused.
func TestTheSameAgain(t *testing.T) {
	w := newWorld(t)
	w.run(nil)
	w.write(message("a", source("1")), message("b", source("2")))
	w.settle()
	calls, revision := w.calls.Load(), w.store.Catalog().Revision
	w.write(message("a", source("1")), message("c", source("1")))
	w.settle()
	if w.calls.Load() != calls || w.store.Catalog().Revision != revision || w.current("wine") != "2" {
		t.Errorf("%d changes more, revision %d after %d, version %q is current", w.calls.Load()-calls, w.store.Catalog().Revision, revision, w.current("wine"))
	}
	other := source("1")
	other.Data = append(other.Data, '\n')
	w.write(message("d", other), message("a", other), message("e", source("3")))
	w.settle()
	w.want(outcome{"a", Deployed}, outcome{"b", Deployed}, outcome{"a", Unchanged}, outcome{"c", Unchanged}, outcome{"e", Deployed},
		outcome{"d", `conflict: version "1" of model "wine" exists with another content, by the update a`}, outcome{"a", "repeated_id: an id twice: another update had the uuid \"a\", at in 0/0"})
}

// TestWhatIsWrong becomes a dead letter each, and the stream goes on.
func TestWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	w.app("strings") // takes doubles
	if _, err := w.store.Apply(t.Context(), catalog.PutVersion{Version: serving.Version{ModelID: serving.ModelID{Model: "wine", Version: "by-hand"}, InputType: serving.Doubles, Replicas: 1}}, 0); err != nil {
		t.Fatal(err)
	}
	w.run(func(c *Config) { c.MaxRecord, c.MaxModel = 4000, 2000 })
	change := func(id string, change func(*Model)) serving.StreamMessage {
		m := source("1")
		m.Name = "model-" + id
		change(m)
		return message(id, m)
	}
	sum := func(data []byte) string { s := sha256.Sum256(data); return hex.EncodeToString(s[:]) }
	for _, one := range []struct {
		record serving.StreamMessage
		want   string
	}{
		{text("garbage"), "unreadable: the message is no protobuf update"},
		{text(`{"uuid": "x"}`), "unreadable: the message is no json update: it needs a model or an ensemble"},
		{text(`{"uuid": "x", "modle": {}}`), `unreadable: the message is no json update: json: unknown field "modle"`},
		{text(`{"model": {"name": "m"}}`), "no_id"},
		{text(`{"uuid": "x", "model": {"name": "m", "version": 1, "kind": "python", "data": "%s"}}`, strings.Repeat("A", 4000)), "record_too_large"},
		{change("1", func(m *Model) { m.Kind = "caffe" }), `unknown_kind: there is no kind of model "caffe": use one of bundle, command`},
		{change("2", func(m *Model) { m.Version = "no version" }), "invalid: "},
		{change("3", func(m *Model) { m.Data = nil }), "invalid: give data"},
		{change("4", func(m *Model) { m.SHA256 = sum([]byte("other")) }), "wrong_checksum: the checksum of the model is "},
		{change("5", func(m *Model) { m.InputType = "" }), "invalid: a model of kind python needs an input_type"},
		{change("6", func(m *Model) { m.Python = "2.7" }), "invalid: no bundle can be made of the model: python is"},
		{change("7", func(m *Model) { m.Entry = "../../etc/passwd" }), "invalid: "},
		{change("8", func(m *Model) { m.Entry = "manifest.json" }), "invalid: "},
		{change("9", func(m *Model) { m.Archive = true }), "invalid: the model is no zip archive"},
		{change("10", func(m *Model) { m.Requirements = []string{"--index-url=http://elsewhere"} }), "invalid: "},
		{change("11", func(m *Model) { m.Example = `"text"` }), "invalid: no bundle can be made of the model: example"},
		{change("21", func(m *Model) { m.Kind, m.Entry = "tensorflow", "" }), "invalid: a model of kind tensorflow is a folder"},
		{change("12", func(m *Model) { m.Data, m.Location, m.SHA256 = nil, "http://models.example.com/m", sum(nil) }), "location_refused"},
		{change("13", func(m *Model) { m.Apps = []string{"nobody"} }), `unknown: there is no app "nobody"`},
		{change("14", func(m *Model) { m.Apps, m.InputType = []string{"strings"}, "strings" }), "refused: the management API refuses the version is registered; that app strings asks it: "},
		{change("15", func(m *Model) { m.Kind, m.InputType = bundleKind, "" }), "refused: the management API refuses its bundle: "},
		{change("16", func(m *Model) { m.Data = bytes.Repeat([]byte("x"), 2001) }), "model_too_large"},
		{change("17", func(m *Model) { m.Name, m.Version = "wine", "by-hand" }), `conflict: version "by-hand" of model "wine" exists, and was not made by a stream`},
		{text(`{"uuid": "18", "ensemble": {"name": "e", "input_type": "doubles", "models": []}}`), "invalid: it needs latency_slo_micros"},
		{text(`{"uuid": "19", "ensemble": {"name": "e", "input_type": "doubles", "models": ["none"], "latency_slo_micros": 1000}}`), `unknown: there is no model "none"`},
		{text(`{"uuid": "20", "ensemble": {"name": "e", "input_type": "doubles", "models": [], "latency_slo_micros": 1000, "policy": "guess"}}`), "refused: "},
	} {
		before := len(w.read("dead"))
		w.write(one.record)
		w.settle()
		dead := w.outcomesOf()
		if len(w.read("dead")) != before+1 || !strings.HasPrefix(dead[len(dead)-1].what, one.want) {
			t.Errorf("%.60s: %q, want %q", one.record.Value, dead[len(dead)-1].what, one.want)
		}
	}
	if len(w.store.Catalog().Models) != 2 || len(w.store.Catalog().Apps) != 1 { // by hand, and the one that cannot be linked
		t.Errorf("there are %v and %v", w.store.Catalog().Models, w.store.Catalog().Apps)
	}
	w.write(message("good", source("2")))
	w.settle()
	if w.current("wine") != "2" || w.job.Ready() != nil {
		t.Errorf("version %q is current, %v", w.current("wine"), w.job.Ready())
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "topsail-model-*")); len(left) > 0 && w.Context().Err() == nil {
		t.Logf("folders of other tests: %v", left)
	}
}

// TestAnyOrder has the updates of a model come in every order, and twice: in the end all
// versions are there, and the newest is current.
func TestAnyOrder(t *testing.T) {
	for _, order := range [][]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}, {3, 1, 2, 1, 3}} {
		w := newWorld(t)
		w.run(func(c *Config) { c.Batch = 2 })
		for i, n := range order {
			u := Update{UUID: fmt.Sprintf("%d at %d", n, i), Sequence: uint64(n), Model: source(fmt.Sprint(n))}
			w.write(serving.StreamMessage{Stream: "in", Value: u.AppendJSON(nil)})
		}
		w.settle()
		if got := w.current("wine"); got != "3" || len(w.store.Catalog().Models["wine"].Versions) != 3 {
			t.Errorf("in the order %v version %s is current", order, got)
		}
		newest := 0
		for i, o := range w.outcomesOf() {
			n := order[i]
			want := Deployed
			if n < newest {
				want = Outdated
			}
			if i >= 3 {
				want = Unchanged
			}
			if newest = max(newest, n); o.what != want {
				t.Errorf("in the order %v update %s is %s", order, o.id, o.what)
			}
		}
	}
}

// TestCutOff has each request fail in turn, before it is done and after: in the end it is
// as if none had.
func TestCutOff(t *testing.T) {
	for _, answered := range []bool{false, true} {
		for n := 0; ; n++ {
			w := newWorld(t)
			w.app("tasting")
			var seen atomic.Int64
			fired := atomic.Bool{}
			w.fail(func(_ *http.Request, after bool) bool {
				if after != answered || int(seen.Add(1)) != n+1 {
					return false
				}
				fired.Store(true)
				return true
			})
			w.run(nil)
			m := source("1")
			m.Apps = []string{"tasting"}
			w.write(message("a", m))
			w.settle()
			w.want(outcome{"a", Deployed})
			if w.current("wine") != "1" || !slices.Equal(w.store.Catalog().Apps["tasting"].Models, []string{"wine"}) {
				t.Errorf("cut off at %d: %+v", n, w.store.Catalog())
			}
			w.stop()
			if !fired.Load() {
				if n < 6 {
					t.Fatalf("there are only %d requests", n)
				}
				break
			}
		}
	}
}

// TestKilled ends the process at each request, which is done or not: another one goes on,
// and acknowledges as if nothing had been.
func TestKilled(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t)
		w.app("tasting")
		reached, over := make(chan struct{}), make(chan struct{})
		var seen atomic.Int64
		hang := func(*http.Request, bool) bool {
			if int(seen.Add(1)) == n {
				close(reached)
				<-over
				return true
			}
			return false
		}
		w.fail(hang)
		w.run(nil)
		m := source("1")
		m.Apps = []string{"tasting"}
		w.write(message("a", m), message("b", source("2")))
		ended := false
		select {
		case <-reached:
		case <-time.After(patience):
			t.Fatal("nothing is asked")
		case <-w.committed(2):
			ended = true
		}
		w.stop() // nothing is committed
		close(over)
		w.fail(nil)
		if ended {
			if n < 12 {
				t.Fatalf("there are only %d steps", n)
			}
			return
		}
		if len(w.read("out")) > 0 {
			t.Fatal("something is committed")
		}
		w.run(nil)
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", Deployed})
		if cat := w.store.Catalog(); w.current("wine") != "2" || len(cat.Models["wine"].Versions) != 2 || !slices.Equal(cat.Apps["tasting"].Models, []string{"wine"}) {
			t.Errorf("killed at step %d: %+v", n, cat)
		}
		w.stop()
	}
}

// committed is closed when so many records are.
func (w *world) committed(n int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		for {
			w.mu.Lock()
			is, changed := w.done >= n, w.changed
			w.mu.Unlock()
			if is {
				close(done)
				return
			}
			select {
			case <-changed:
			case <-w.Context().Done():
				return
			}
		}
	}()
	return done
}

// TestTheAPIIsAway is waited for, whatever it says, and nothing becomes a dead letter.
func TestTheAPIIsAway(t *testing.T) {
	w := newWorld(t)
	var answer atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		switch answer.Load() {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			to.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			http.NotFound(to, r) // something else is at its address
		case 3:
			http.Error(to, `{"code": "unauthorized", "detail": "show a key"}`, http.StatusUnauthorized)
		case 4:
			http.Redirect(to, r, w.server.URL, http.StatusFound)
		default:
			w.server.Config.Handler.ServeHTTP(to, r)
		}
	}))
	defer front.Close()
	w.run(func(c *Config) { c.API.URL = front.URL })
	w.write(message("a", source("1")))
	for n := range int64(5) {
		answer.Store(n)
		failed := w.job.Status().LastFailed
		w.until("trouble", func() bool {
			s := w.job.Status()
			return s.LastFailed != nil && (failed == nil || s.LastFailed.After(*failed)) && s.Trouble != "" && w.job.Ready() != nil
		})
	}
	answer.Store(9)
	w.settle()
	w.want(outcome{"a", Deployed})
	if err := w.job.Ready(); err != nil {
		t.Error(err)
	}
}

// TestKeys waits for a key that may deploy, and tells it from one that may not deploy this.
func TestKeys(t *testing.T) {
	w := newWorldWith(t, true)
	w.app("tasting")
	secrets := map[string]string{}
	for name, key := range map[string]serving.Key{
		"viewer": {Role: serving.RoleViewer}, "deployer": {Role: serving.RoleDeployer}, "other": {Role: serving.RoleDeployer, Apps: []string{"other"}},
	} {
		made, secret := serving.NewKey()
		made.Name, made.Role, made.Apps = name, key.Role, key.Apps
		if _, err := w.store.Apply(t.Context(), catalog.AddKey{Key: *made}, 0); err != nil {
			t.Fatal(err)
		}
		secrets[name] = secret
	}
	var shown atomic.Value
	shown.Store("")
	w.run(func(c *Config) { c.API.Key = func() []byte { return []byte(shown.Load().(string)) } })
	m := source("1")
	m.Apps = []string{"tasting"}
	w.write(message("a", m))
	w.until("trouble without a key", func() bool { return strings.Contains(w.job.Status().Trouble, "key") })
	shown.Store(secrets["viewer"])
	w.until("trouble with a viewer's", func() bool { return strings.Contains(w.job.Status().Trouble, "has not the role deployer") })
	if len(w.read("dead")) > 0 {
		t.Error("there is a dead letter")
	}
	shown.Store(secrets["deployer"])
	w.settle()
	shown.Store(secrets["other"])
	w.write(message("b", source("2")))
	w.settle()
	w.want(outcome{"a", Deployed}, outcome{"b", "refused: the management API refuses it: "})
}

// TestOthersGoOn while one model cannot be fetched.
func TestOthersGoOn(t *testing.T) {
	w := newWorld(t)
	var asked atomic.Int64
	models := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) { asked.Add(1); to.WriteHeader(http.StatusBadGateway) }))
	defer models.Close()
	away := source("1")
	away.Name, away.Data, away.Location, away.SHA256 = "away", nil, models.URL+"/wine.py", strings.Repeat("ab", 32)
	w.run(func(c *Config) { c.Locations.Prefixes = []string{models.URL + "/"} })
	w.write(message("a", away), message("b", source("1")), message("c", source("2")))
	w.settle()
	w.want(outcome{"b", Deployed}, outcome{"c", Deployed}, outcome{"a", "location_away: the model cannot be fetched: "})
	if asked.Load() < 2 {
		t.Errorf("it was asked %d times", asked.Load())
	}
}

// TestLocations fetches models, and holds them to their checksums and to where they may be.
func TestLocations(t *testing.T) {
	w := newWorld(t)
	body := source("1").Data
	sum := sha256.Sum256(body)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "wine.py"), body, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.py")); err != nil {
		t.Fatal(err)
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it went elsewhere") }))
	defer elsewhere.Close()
	models := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/models/good.py", "/secret.py":
			_, _ = to.Write(body)
		case "/models/other.py":
			_, _ = to.Write([]byte("something else"))
		case "/models/leads":
			http.Redirect(to, r, elsewhere.URL, http.StatusFound)
		case "/models/breaks.py":
			to.Header().Set("Content-Length", "1000")
			_, _ = to.Write(body)
		}
	}))
	defer models.Close()
	w.run(func(c *Config) { c.Locations.Prefixes = []string{models.URL + "/models/", "file://" + dir + "/"} })
	for i, one := range []struct{ location, want string }{
		{models.URL + "/models/good.py", Deployed},
		{"file://" + dir + "/wine.py", Deployed},
		{models.URL + "/models/other.py", "wrong_checksum"},
		{models.URL + "/models/leads", "location_refused"},
		{models.URL + "/models/breaks.py", "location_away"},
		{models.URL + "/models/../secret.py", "location_refused"},
		{models.URL + "/models/%2e%2e/secret.py", "location_refused"},
		{models.URL + "/secret.py", "location_refused"},
		{strings.Replace(models.URL, "http://", "http://user:secret@", 1) + "/models/good.py", "location_refused"},
		{"file://" + dir + "/link.py", "location_away"},
		{"file://" + dir + "/none.py", "location_away"},
		{"file:///etc/passwd", "location_refused"},
		{"gopher://models", "location_refused"},
		{"://", "invalid"},
	} {
		m := source("1")
		m.Name, m.Data, m.Location, m.SHA256 = fmt.Sprintf("m%d", i), nil, one.location, hex.EncodeToString(sum[:])
		dead, out := len(w.read("dead")), len(w.read("out"))
		w.write(message(fmt.Sprint(i), m))
		w.settle()
		all := w.outcomesOf()
		got := all[len(all)-1].what
		if len(w.read("out")) > out {
			got = all[out].what
		} else if len(w.read("dead")) != dead+1 {
			t.Fatalf("%s: nothing became of it", one.location)
		}
		if !strings.HasPrefix(got, one.want) || strings.Contains(got, "secret@") {
			t.Errorf("%s: %s, want %s", one.location, got, one.want)
		}
	}
	a, b := w.store.Catalog().Models["m0"], w.store.Catalog().Models["m1"]
	if a == nil || b == nil || a.Versions["1"].Container.Bundle != b.Versions["1"].Container.Bundle {
		t.Error("the same model has two bundles")
	}
}

// TestKinds makes a bundle of each kind of model.
func TestKinds(t *testing.T) {
	archive := func(names ...string) []byte {
		var out bytes.Buffer
		z := zip.NewWriter(&out)
		for _, name := range names {
			f, err := z.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(f, "content of ", name)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	var packed bytes.Buffer
	if err := bundle.Write(&packed, &bundle.Manifest{Runtime: "python", Python: "3.11", Entry: "m:f", InputType: serving.Doubles}, fstest.MapFS{"m.py": {Data: []byte("f = 1")}}); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		model           Model
		manifest, files string
	}{
		{Model{Kind: "python"}, "python 3.11 model.pkl []", "model.pkl"},
		{Model{Kind: "python", Entry: "wine.taste:predict", Python: "3.12"}, "python 3.12 wine.taste:predict []", "wine/taste.py"},
		{Model{Kind: "sklearn", Requirements: []string{"scikit-learn==1.5.2"}}, "sklearn 3.11 model.pkl []", "model.pkl"},
		{Model{Kind: "onnx"}, "onnx 3.11 model.onnx []", "model.onnx"},
		{Model{Kind: "onnx", Entry: "deep/net.onnx"}, "onnx 3.11 deep/net.onnx []", "deep/net.onnx"},
		{Model{Kind: "torch"}, "torch 3.11 model.pt []", "model.pt"},
		{Model{Kind: "xgboost"}, "xgboost 3.11 model.json []", "model.json"},
		{Model{Kind: "lightgbm"}, "lightgbm 3.11 model.txt []", "model.txt"},
		{Model{Kind: "r"}, "r 3.11 model.R []", "model.R"},
		{Model{Kind: "pyspark", Entry: "pipeline", Archive: true, Data: archive("pipeline/a", "pipeline/b/c")}, "pyspark 3.11 pipeline []", "pipeline/a pipeline/b/c"},
		{Model{Kind: "tensorflow", Archive: true, Data: archive("saved_model.pb", "variables/x")}, "tensorflow 3.11 saved_model []", "saved_model/saved_model.pb saved_model/variables/x"},
		{Model{Kind: "tensorflow", Archive: true, Entry: "wine/1", Data: archive("wine/1/saved_model.pb")}, "tensorflow 3.11 wine/1 []", "wine/1/saved_model.pb"},
		{Model{Kind: "pmml"}, "pmml  model.pmml []", "model.pmml"},
		{Model{Kind: "command"}, "command   [./serve]", "serve"},
		{Model{Kind: "command", Archive: true, Data: archive("bin/run", "x"), Command: []string{"./bin/run", "-v"}}, "command   [./bin/run -v]", "bin/run x"},
		{Model{Kind: "bundle", Data: packed.Bytes()}, "python 3.11 m:f []", "m.py"},
	} {
		m := one.model
		m.Name, m.Version, m.InputType = "m", "1", "doubles"
		if m.Data == nil {
			m.Data = []byte("the model")
		}
		d := deployment{model: &m}
		if why := d.checked(); why != nil {
			t.Errorf("%s: %v", m.Kind, why)
			continue
		}
		var digests []string
		for range 2 {
			p := parcelOf(t, &m)
			content, err := os.ReadFile(p.bundle)
			if err != nil {
				t.Fatal(err)
			}
			b, err := bundle.Open(bytes.NewReader(content), int64(len(content)))
			if err == nil {
				err = b.Verify(t.Context())
			}
			if err != nil {
				t.Fatalf("%s: %v", m.Kind, err)
			}
			got := b.Manifest
			var files []string
			for name := range got.Files {
				files = append(files, name)
			}
			slices.Sort(files)
			if text := fmt.Sprintf("%s %s %s %v", got.Runtime, got.Python, got.Entry, got.Command); text != one.manifest || strings.Join(files, " ") != one.files {
				t.Errorf("%s: %q with %v, want %q with %s", m.Kind, text, files, one.manifest, one.files)
			}
			digest, err := bundle.Digest(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			digests = append(digests, digest)
			p.remove()
			if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
				t.Errorf("the folder is left: %v", err)
			}
		}
		if digests[0] != digests[1] {
			t.Errorf("%s: the same model makes two bundles", m.Kind)
		}
	}
}

func parcelOf(t *testing.T, m *Model) *parcel {
	t.Helper()
	f, why := factoryOf(m.Kind)
	if why != nil {
		t.Fatal(why)
	}
	p, err := newParcel()
	if err == nil {
		err = p.receive(m, bytes.NewReader(m.Data), 1<<20)
	}
	if err == nil {
		err = p.pack(f, m, "3.11", 1<<20)
	}
	if err != nil {
		t.Fatalf("%s: %v", m.Kind, err)
	}
	return p
}

// TestEnsembles makes and changes apps, in the order of the updates.
func TestEnsembles(t *testing.T) {
	w := newWorld(t)
	w.run(nil)
	ensemble := func(id string, sequence, slo uint64, policy string) serving.StreamMessage {
		return text(`{"uuid": %q, "sequence": %d, "ensemble": {"name": "tasting", "input_type": "doubles", "models": ["wine", "other"],
			"policy": %s, "latency_slo_micros": %d, "default_output": -1, "output_type": "label"}}`, id, sequence, policy, slo)
	}
	other := source("1")
	other.Name = "other"
	// In one batch with the models that it asks, and before them; one of these is to be asked
	// by another app, which comes last.
	other.Apps = []string{"last"}
	w.write(ensemble("e1", 1, 20000, `"vote"`), message("a", source("1")), message("b", other),
		text(`{"uuid": "e0", "ensemble": {"name": "last", "input_type": "doubles", "models": [], "latency_slo_micros": 1000}}`))
	w.settle()
	app := w.store.Catalog().Apps["tasting"]
	if app == nil || app.SLO != 20*time.Millisecond || app.Policy.Kind != "vote" || app.DefaultOutput != "-1" || !slices.Equal(app.Models, []string{"wine", "other"}) {
		t.Fatalf("the app is %+v", app)
	}
	changed := *app
	changed.Weight = 3 // by an operator
	if _, err := w.store.Apply(t.Context(), catalog.PutApp{App: changed}, 0); err != nil {
		t.Fatal(err)
	}
	w.write(ensemble("e3", 3, 30000, `{"kind": "exp4", "eta": 0.5}`), ensemble("e2", 2, 99000, `"vote"`), ensemble("e4", 4, 30000, `{"kind": "exp4", "eta": 0.5}`))
	w.settle()
	w.want(outcome{"e1", Configured}, outcome{"a", Deployed}, outcome{"b", Deployed}, outcome{"e0", Configured}, outcome{"e3", Configured}, outcome{"e2", Outdated}, outcome{"e4", Unchanged})
	if app := w.store.Catalog().Apps["tasting"]; app.SLO != 30*time.Millisecond || app.Policy.Kind != "exp4" || app.Weight != 3 {
		t.Errorf("the app is %+v", app)
	}
}

// TestSuspended takes nothing more, and goes on from where it was, also after a restart.
func TestSuspended(t *testing.T) {
	w := newWorld(t)
	apply := func(change catalog.Change) {
		t.Helper()
		if _, err := w.store.Apply(t.Context(), change, 0); err != nil {
			t.Fatal(err)
		}
	}
	follow := func(c *Config) { c.Catalog = w.store }
	apply(catalog.PutStream{Stream: serving.Stream{Name: "models", Kind: serving.ModelStream, Input: []string{"in"}, Output: "out", DeadLetter: "dead"}})
	w.run(follow)
	w.write(message("a", source("1")))
	w.settle()
	apply(catalog.SuspendStream{Name: "models", Suspension: serving.Suspension{By: "ann", Reason: "bad models"}})
	w.until("suspension", func() bool { return w.job.Status().Suspended != nil })
	w.write(message("b", source("2")))
	w.stop()
	w.run(follow) // it is still suspended
	w.until("suspension", func() bool { return w.job.Status().Suspended != nil })
	if s := w.job.Status(); s.Suspended.Reason != "bad models" || s.InHand != 0 || w.current("wine") != "1" {
		t.Errorf("%+v, version %s is current", s, w.current("wine"))
	}
	apply(catalog.ResumeStream{Name: "models"})
	w.settle()
	w.want(outcome{"a", Deployed}, outcome{"b", Deployed})
	if w.job.Status().Suspended != nil || w.current("wine") != "2" {
		t.Errorf("version %s is current", w.current("wine"))
	}
}

// TestSuspendedWhileItWaits for the management API: it stops asking.
func TestSuspendedWhileItWaits(t *testing.T) {
	w := newWorld(t)
	stream := serving.Stream{Name: "models", Kind: serving.ModelStream, Input: []string{"in"}, Output: "out", DeadLetter: "dead"}
	if _, err := w.store.Apply(t.Context(), catalog.PutStream{Stream: stream}, 0); err != nil {
		t.Fatal(err)
	}
	w.fail(func(*http.Request, bool) bool { return true })
	w.run(func(c *Config) { c.Catalog = w.store })
	w.write(message("a", source("1")))
	w.until("trouble", func() bool { return w.job.Status().Trouble != "" })
	if _, err := w.store.Apply(t.Context(), catalog.SuspendStream{Name: "models"}, 0); err != nil {
		t.Fatal(err)
	}
	w.until("suspension", func() bool { return w.job.Status().Suspended != nil })
	w.fail(nil)
	if s := w.job.Status(); s.InHand != 1 || w.current("wine") != "" {
		t.Errorf("%+v", s)
	}
	if _, err := w.store.Apply(t.Context(), catalog.ResumeStream{Name: "models"}, 0); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.want(outcome{"a", Deployed})
}

// TestLostRecords come again, and are acknowledged once.
func TestLostRecords(t *testing.T) {
	w := newWorld(t)
	w.lose = true
	w.run(nil)
	w.write(message("a", source("1")))
	w.settle()
	w.want(outcome{"a", Deployed})
	if s := w.job.Status(); s.Lost != 1 || s.Updates != 1 {
		t.Errorf("%+v", s)
	}
}

// TestRollBack by a person stays, whatever comes again.
func TestRollBack(t *testing.T) {
	w := newWorld(t)
	w.run(nil)
	w.write(message("a", source("1")), message("b", source("2")))
	w.settle()
	if _, err := w.store.Apply(t.Context(), catalog.SetCurrent{ID: serving.ModelID{Model: "wine", Version: "1"}}, 0); err != nil {
		t.Fatal(err)
	}
	w.write(message("c", source("2")))
	w.settle()
	if w.current("wine") != "1" {
		t.Errorf("version %s is current", w.current("wine"))
	}
}

func TestCheck(t *testing.T) {
	good := Config{Name: "m", Output: "out", DeadLetter: "dead", Streams: []string{"in"}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"needs a name":            func(c *Config) { c.Name = "" },
		"needs an output":         func(c *Config) { c.Output = "" },
		"needs a dead_letter":     func(c *Config) { c.DeadLetter = "" },
		"dead_letter is an input": func(c *Config) { c.DeadLetter = "in" },
		"output is an input":      func(c *Config) { c.Output = "in" },
		"locations: ":             func(c *Config) { c.Locations.Prefixes = []string{"http://user@host/"} },
		"python is":               func(c *Config) { c.Python = "2.7" },
		"negative":                func(c *Config) { c.MaxModel = -1 },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := New(good); err == nil || !strings.Contains(err.Error(), "needs a consumer") {
		t.Errorf("%v", err)
	}
}
