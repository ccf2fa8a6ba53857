package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/containers/launch"
	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
)

const (
	deployCheck  = "deploy"
	deployWithin = 3 * time.Minute
	retryDeploy  = 500 * time.Millisecond
	deployModel  = "topsail-doctor"
)

// Deploy deploys a small bundle, waits for a replica that is ready, and takes all of it
// away again. key is shown to management; empty: none.
func Deploy(ctx context.Context, cfg *config.Config, key string) check.Finding {
	ctx, cancel := context.WithTimeoutCause(ctx, deployWithin, fmt.Errorf("it was not ready within %v", deployWithin))
	defer cancel()
	p := newParts(cfg, slog.New(slog.DiscardHandler))
	const next = "look at the model " + deployModel + " and at its replica's log: `topsail decision list`, `topsail logs`"
	d, err := p.newDeployment(ctx, key)
	if err != nil {
		return check.Broken(ctx, deployCheck, err, "run the job topsail-web; a key of a deployer is in TOPSAIL_API_KEY")
	}
	begun := time.Now()
	node, err := d.run(ctx)
	if gone := d.remove(context.WithoutCancel(ctx)); err == nil && gone != nil {
		err = fmt.Errorf("it was ready, but cannot be removed: %w", gone)
	}
	if err != nil {
		return check.Broken(ctx, deployCheck, err, next)
	}
	return check.Good(deployCheck, "a bundle was ready on node %s after %v, and was removed", node, time.Since(begun).Round(100*time.Millisecond))
}

// deployment is the bundle that the doctor deploys.
type deployment struct {
	client  *http.Client
	url     string // of the API
	key     string
	archive []byte
	digest  string
}

func (p *parts) newDeployment(ctx context.Context, key string) (*deployment, error) {
	d := &deployment{key: key}
	consul, err := consulregistry.Connect(consulregistry.Options{Log: p.Log})
	if err != nil {
		return nil, err
	}
	list, err := consul.Instances(ctx, webService)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(e serving.Endpoint) bool { return e.Ready })
	if i < 0 {
		return nil, errors.New("no management process is ready")
	}
	d.url = p.Scheme() + list[i].Addr + "/api/v1"
	if d.client, err = p.Client(); err != nil {
		return nil, err
	}
	python, err := p.somePython()
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	m := &bundle.Manifest{Runtime: "python", Python: python, Entry: "probe:predict", InputType: serving.Doubles, Description: "made by topsail doctor"}
	code := fmt.Sprintf("# %d\ndef predict(inputs):\n    return [sum(x) for x in inputs]\n", time.Now().UnixNano()) // no node has it
	if err := bundle.Write(&archive, m, fstest.MapFS{"probe.py": {Data: []byte(code)}}); err != nil {
		return nil, err
	}
	d.archive = archive.Bytes()
	d.digest, err = bundle.Digest(bytes.NewReader(d.archive))
	return d, err
}

// somePython is a version that nodes have, or else this machine.
func (p *parts) somePython() (string, error) {
	if all := p.Config.Runtimes.Pythons; len(all) > 0 {
		return all[0], nil
	}
	find := launch.PythonsIn(filepath.SplitList(os.Getenv("PATH")))
	for n := 20; n >= bundle.OldestMinor; n-- {
		if _, ok := find(fmt.Sprintf("3.%d", n)); ok {
			return fmt.Sprintf("3.%d", n), nil
		}
	}
	return "", errors.New("found no Python here: list the versions of the nodes in runtimes.pythons")
}

// run returns the node on which a replica is ready.
func (d *deployment) run(ctx context.Context) (node string, err error) {
	if err := d.ask(ctx, http.MethodPost, "/artifacts", "application/zip", d.archive, nil); err != nil {
		return "", err
	}
	version, err := json.Marshal(map[string]any{"version": d.digest[len("sha256:"):][:12], "bundle": d.digest, "replicas": 1})
	if err != nil {
		return "", err
	}
	if err := d.ask(ctx, http.MethodPost, "/models/"+deployModel+"/versions", "application/json", version, nil); err != nil {
		return "", err
	}
	again := time.NewTicker(retryDeploy)
	defer again.Stop()
	state := "no replica was started"
	for {
		var list struct {
			Items []struct{ Model, State, Reason, Node string }
		}
		if err := d.ask(ctx, http.MethodGet, "/replicas?model="+deployModel, "", nil, &list); err != nil {
			return "", err
		}
		for _, r := range list.Items {
			if r.Model == deployModel && r.State == "ready" && r.Node != "" { // Nomad may say it after Consul
				return r.Node, nil
			}
			if r.Model == deployModel {
				state = "its replica is " + strings.TrimSpace(r.State+" "+r.Reason)
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return "", fmt.Errorf("%w: %s", context.Cause(ctx), state)
		}
	}
}

// remove takes the model and the bundle away.
func (d *deployment) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return errors.Join(d.ask(ctx, http.MethodDelete, "/models/"+deployModel, "", nil, nil), d.ask(ctx, http.MethodDelete, "/artifacts/"+d.digest, "", nil, nil))
}

// maxSaid bounds an answer of management, in bytes.
const maxSaid = 4 << 20

func (d *deployment) ask(ctx context.Context, method, path, kind string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if d.key != "" {
		req.Header.Set("X-Api-Key", d.key)
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxSaid))
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= 400:
		var problem struct{ Detail string }
		_ = json.Unmarshal(text, &problem) // the status says the rest
		return fmt.Errorf("%s %s: %s %s", method, path, resp.Status, problem.Detail)
	case into != nil:
		return json.Unmarshal(text, into)
	}
	return nil
}
