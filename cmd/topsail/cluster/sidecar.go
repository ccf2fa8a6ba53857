package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/containers/bundlecache"
	"github.com/topsail-serving/topsail/containers/launch"
	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

// Sidecar serves one replica until ctx ends, then drains. Its container connects
// by itself, with a token that this process draws and writes to a file.
func Sidecar(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	sidecar.LeaveProcessors()
	p := newParts(cfg, log)
	defer p.Close()
	models, err := parseModels(cfg.Sidecar)
	if err != nil {
		return err
	}
	meter := demand.NewMeter()
	var hung atomic.Bool // a container, and only its end repairs that
	one := sidecar.Config{Replica: role.Name(cfg.Sidecar.Replica), Models: models, Demand: meter, Stalled: func() { hung.Store(true) }, OwnsV1: cfg.Sidecar.ContainerAddr != ""}
	client, err := launch.Client(cfg.TLS.CAFile, cfg.TLS.ServerName)
	if err != nil {
		return err
	}
	if one.Fetch, err = fetch(cfg.Sidecar, client, models); err != nil {
		return err
	}
	if file := cfg.Sidecar.TokenFile; file != "" {
		token, err := p.Token(file)
		if err != nil {
			return err
		}
		one.GatewayToken = token.Bytes
	}
	if file := cfg.Sidecar.ContainerTokenFile; file != "" {
		if one.ContainerToken, err = drawToken(file); err != nil {
			return err
		}
	}
	gateways, err := p.Listen("sidecar.addr", cfg.Sidecar.Addr, cfg.TLS.CAFile != "")
	if err != nil {
		return err
	}
	containers, err := net.Listen("tcp", cfg.Sidecar.ContainersAddr)
	if err != nil {
		return fmt.Errorf("cannot listen on sidecar.containers_addr: %w", err)
	}
	defer containers.Close()
	ops, err := p.ListenOps()
	if err != nil {
		return err
	}
	demands, err := p.openDemand()
	if err != nil {
		return err
	}
	announce, err := p.announceReplica(one, gateways, ops)
	if err != nil {
		return err
	}
	s := sidecar.New(one, sidecar.NewMetrics(p.Metrics), log)

	return phase.Run(ctx,
		phase.Phase{func(ctx context.Context) error { return s.Run(ctx, gateways, containers) }, announce},
		phase.Phase{
			counted{as: "sidecar", name: one.Replica, meter: meter}.report(demands),
			p.reportMetrics(serving.DemandSource{Role: "sidecar", Name: one.Replica}, demands),
		},
		phase.Phase{demands.Run, p.ServeOps(ops, obs.Health{Ready: s.Ready, Live: func() error { return live(&hung) }})},
	)
}

// bundleCacheFactor is how many times the memory of a host its bundles may take on disk.
const bundleCacheFactor = 4

// fetch is how a host's bundles come to its container; nil where there is no host.
func fetch(cfg config.Sidecar, client *http.Client, models []*serving.Version) (sidecar.Fetch, error) {
	i := slices.IndexFunc(models, func(v *serving.Version) bool { return v.Host != nil })
	if i < 0 {
		return nil, nil
	}
	if cfg.ModelsDir == "" {
		return nil, errors.New("a host needs sidecar.models_dir, a folder that its container finds by TOPSAIL_MODELS_DIR")
	}
	source := func(ctx context.Context, digest string) ([]string, error) {
		switch {
		case cfg.BundlesURL != "":
			return []string{strings.TrimRight(cfg.BundlesURL, "/") + "/api/v1/artifacts/" + digest + "/content"}, nil
		case cfg.ManagementFile != "":
			return launch.Sources(ctx, cfg.ManagementFile, digest, os.Stdout)
		}
		return nil, errors.New("the sidecar does not know where bundles are: set sidecar.bundles_url, or give the version a bundle_url")
	}
	kept, err := bundlecache.Open(cfg.ModelsDir, bundleCacheFactor*models[i].Host.Bytes(), bundlecache.Source{Of: source, Client: client}, os.Stdout)
	if err != nil {
		return nil, err
	}
	return kept.Fetch, nil
}

// live says that the container has to be started anew, which the check "live" of the job
// has Nomad do with all tasks of the replica, this process included. Until then it stays
// so: a container that hangs may well connect again and announce that it is ready.
func live(hung *atomic.Bool) error {
	if hung.Load() {
		return errors.New("the container does not answer; it has to be restarted")
	}
	return nil
}

// announceReplica is announce for a sidecar, which uses Consul for nothing else.
func (p *parts) announceReplica(one sidecar.Config, ln, ops net.Listener) (phase.Job, error) {
	var client *consulregistry.Client
	if p.Config.Consul.Announce {
		var err error
		if client, err = consulregistry.Connect(consulregistry.Options{Log: p.Log}); err != nil {
			return nil, err
		}
	}
	var models []string
	for _, v := range one.Models {
		models = append(models, v.String())
	}
	meta := map[string]string{"replica": one.Replica, "models": strings.Join(models, ",")}
	return p.announce(client, p.Config.Consul.Service, one.Replica, ln, ops, meta), nil
}

// drawToken draws a token and puts it into a file for the container, which may run
// as another user: the folder keeps others out.
func drawToken(file string) ([]byte, error) {
	token := []byte(rand.Text())
	err := os.WriteFile(file+".new", token, 0o644)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return nil, fmt.Errorf("write the container's token: %w", err)
	}
	return token, nil
}

// parseModels reads the versions that the replica serves.
func parseModels(cfg config.Sidecar) ([]*serving.Version, error) {
	models, err := serving.ParseSidecarVersions([]byte(cfg.Models))
	if err != nil || len(models) == 0 {
		return nil, fmt.Errorf("sidecar.models must be a JSON list of model versions; the job of a version sets it: %w", cmpErr(err))
	}
	for _, v := range models {
		if cfg.ContainerAddr != "" {
			v.Container.Addr = cfg.ContainerAddr
		}
		if err := v.Check(); err != nil {
			return nil, fmt.Errorf("sidecar.models: %w", err)
		}
	}
	return models, nil
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("it is empty")
	}
	return err
}
