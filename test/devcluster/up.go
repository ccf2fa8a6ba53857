package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/test/servers"
)

// up starts the servers, deploys Topsail on them, and waits for an answer.
func up(ctx context.Context, o options) (err error) {
	if s, err := o.load(); err != nil || len(s.Servers) > 0 {
		return errors.Join(err, errors.New("a cluster is up already, or was not taken down: run "+o.downCommand()))
	}
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("%5.1f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	defer func() {
		if err != nil {
			say("that failed; stopping what was started (the logs stay in %s)", o.dir)
			err = errors.Join(err, stop(o))
		}
	}()
	say("starting Redis, Consul, InfluxDB and Nomad with two clients")
	if err := startServers(ctx, o); err != nil {
		return err
	}
	for _, job := range []string{"scheduler", "web", "gateway"} {
		say("running the job topsail-%s", job)
		if err := o.runJob(ctx, job); err != nil {
			return err
		}
	}
	say("registering the apps and models of %s", o.config)
	if err := o.command(ctx, o.program, "seed", "--config", o.config); err != nil {
		return err
	}
	say("waiting for an answer")
	app, err := o.awaitAnswer(ctx)
	if err != nil {
		return err
	}
	say("ready")
	o.greet(app)
	return nil
}

func startServers(ctx context.Context, o options) error {
	c, err := servers.NewCluster(servers.Options{Dir: o.dir, Ports: o.ports(), Clients: 2})
	if err != nil {
		return err
	}
	err = c.Start(ctx)
	var s state
	for _, one := range c.All() {
		if one.Running() {
			s.Servers = append(s.Servers, server{Name: one.Name, PID: one.PID()})
		}
	}
	return errors.Join(err, o.save(s))
}

// runJob runs one of Topsail's own jobs.
func (o options) runJob(ctx context.Context, name string) error {
	nomad, err := servers.Binary("nomad")
	if err != nil {
		return err
	}
	p := o.ports()
	variables := map[string]string{
		"program":      o.program,
		"redis_addrs":  fmt.Sprintf("[%q]", address(p.Redis)),
		"influxdb_url": "http://" + address(p.InfluxDB),
		"consul_addr":  "http://" + address(p.Consul),
	}
	switch name {
	case "gateway":
		variables["port"] = strconv.Itoa(gatewayPort + o.offset)
		variables["data_dir"] = filepath.Join(o.dir, "topsail")
	case "web":
		variables["port"] = strconv.Itoa(webPort + o.offset)
		variables["nomad_addr"] = "http://" + address(p.Nomad)
		variables["data_dir"], variables["bundles"], variables["count"] = filepath.Join(o.dir, "management"), "", "1" // it has one node
		variables["env"] = fmt.Sprintf("{ TOPSAIL_GATEWAY_ADDR = %q }", o.gateway())
	case "scheduler":
		variables["nomad_addr"] = "http://" + address(p.Nomad)
		variables["per_node"] = "2"
	}
	args := []string{"job", "run", "-detach"}
	for variable, value := range variables {
		args = append(args, "-var", variable+"="+value)
	}
	return o.command(ctx, nomad, append(args, filepath.Join("nomad", "jobs", name+".nomad.hcl"))...)
}

// command runs a program in the environment of the cluster.
func (o options) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), o.environment()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", filepath.Base(name), args, err, out)
	}
	return nil
}

// awaitWithin is how long the models may take to load.
const awaitWithin = 2 * time.Minute

// question is what the demo's apps are asked; topsail.toml has the same examples.
func question(app string) string {
	switch app {
	case "wine":
		return `{"input": [14.23, 1.71, 2.43, 15.6, 127.0, 2.8, 3.06, 0.28, 2.29, 5.64, 1.04, 3.92, 1065.0]}`
	default:
		return `{"input": [0,0,5,13,9,1,0,0,0,0,13,15,10,15,5,0,0,3,15,2,0,11,8,0,0,4,12,0,0,8,8,0,0,5,8,0,0,9,8,0,0,4,11,0,1,12,7,0,0,2,14,5,10,12,0,0,0,0,6,13,10,0,0,0]}`
	}
}

// awaitAnswer asks every demo app until a model has answered, and names one.
func (o options) awaitAnswer(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, awaitWithin)
	defer cancel()
	for _, app := range []string{"wine", "digits"} {
		for {
			err := o.ask(ctx, app)
			if err == nil {
				break
			}
			if !retry.Sleep(ctx, 200*time.Millisecond) {
				return "", fmt.Errorf("app %s gives no prediction: %w; look at %s and at http://%s", app, err, o.dir, address(o.ports().Nomad))
			}
		}
	}
	return "wine", nil
}

// ask fails where the answer is a default output.
func (o options) ask(ctx context.Context, app string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+o.gateway()+"/"+app+"/predict", bytes.NewBufferString(question(app)))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Default     bool   `json:"default"`
		Explanation string `json:"default_explanation"`
		Cause       string `json:"cause"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	if resp.StatusCode != http.StatusOK || answer.Default {
		return fmt.Errorf("%s: %s%s", resp.Status, answer.Explanation, answer.Cause)
	}
	return nil
}

func (o options) greet(app string) {
	p := o.ports()
	fmt.Printf(`
Topsail runs on this machine's Nomad. Ask it:

  curl -s http://%s/%s/predict -d '%s'

Gateway     http://%s
Management  http://%s
Consul      http://%s
Nomad       http://%s
InfluxDB    http://%s
Redis       %s

Data and logs are in %s. Stop everything with: %s
`, o.gateway(), app, question(app), o.gateway(), o.web(), address(p.Consul), address(p.Nomad), address(p.InfluxDB), address(p.Redis), o.dir, o.downCommand())
}

// downCommand stops this cluster.
func (o options) downCommand() string {
	if o.offset == 0 {
		return "make cluster-down"
	}
	return fmt.Sprintf("make cluster-down OFFSET=%d", o.offset)
}
