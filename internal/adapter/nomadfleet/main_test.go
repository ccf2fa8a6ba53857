//go:build servers

package nomadfleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/servers"
)

// nomad is the API of the Nomad that all tests of the package share.
var nomad string

// TestMain starts a Nomad with one client, unless Nomad has started this program in
// place of a sidecar.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "sidecar" {
		standIn()
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // tests wait for Nomad, not for a processor
		panic(err)
	}
	code, err := withNomad(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withNomad(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "nomadfleet")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	defer servers.Sweep(dir)
	alone := servers.NomadOptions{Consul: "127.0.0.1:1"} // where nobody is, or it finds one that runs on this machine
	port, err := servers.FreePorts(16)
	if err != nil {
		return 0, err
	}
	tasks, err := servers.FreePorts(200)
	if err != nil {
		return 0, err
	}
	server, err := servers.NomadServer(filepath.Join(dir, "server"), port, alone)
	if err != nil {
		return 0, err
	}
	if err := configure(filepath.Join(dir, "server", "nomad-server.hcl"), believesInVault); err != nil {
		return 0, err
	}
	client, err := servers.NomadClient("client", filepath.Join(dir, "client"), port+10, tasks, port, alone)
	if err != nil {
		return 0, err
	}
	plugin, err := servers.Binary("plugins/gpus")
	if err != nil {
		return 0, err
	}
	if err := configure(filepath.Join(dir, "client", "client.hcl"), fmt.Sprintf("plugin_dir = %q\nplugin \"gpus\" {\n  config {}\n}\n", filepath.Dir(plugin))); err != nil {
		return 0, err
	}
	defer server.Stop()
	if err := server.Start(context.Background()); err != nil {
		return 0, err
	}
	defer client.Stop()
	if err := client.Start(context.Background()); err != nil {
		return 0, err
	}
	nomad = "http://" + server.Addr
	code := run()
	return code, leaveNothing(filepath.Join(dir, "client", "data", "alloc"))
}

// leaveNothing ends all jobs and waits until the client has put away their tasks,
// which would outlive it, and their folders.
func leaveNothing(folders string) error {
	conf := api.DefaultConfig()
	conf.Address = nomad
	client, err := api.NewClient(conf)
	if err != nil {
		return err
	}
	all, _, err := client.Jobs().List(nil)
	if err != nil {
		return err
	}
	for _, job := range all {
		if _, _, err := client.Jobs().Deregister(job.ID, true, nil); err != nil {
			return err
		}
	}
	until := time.Now().Add(2 * time.Minute) // on a machine that does other things, too
	for poll := time.Tick(time.Second / 2); ; <-poll {
		left, err := os.ReadDir(folders)
		if len(left) == 0 || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d replicas do not end: %v", len(left), left)
		}
		if err := client.System().GarbageCollect(); err != nil { // takes what has ended
			return err
		}
	}
}

// believesInVault lets the server accept jobs that use Vault. There is none.
const believesInVault = "vault {\n  enabled = true\n  address = \"http://127.0.0.1:1\"\n}\n"

// configure adds to the configuration of an agent.
func configure(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// standIn is a sidecar as far as Nomad sees: it is healthy.
func standIn() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go http.ListenAndServe(os.Getenv("TOPSAIL_OPS_ADDR"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	<-stop
}

// settings are those of the tests: this program is the sidecar.
func settings(t testing.TB) jobs.Settings {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return jobs.Settings{
		Program:  jobs.Program{Source: program, CPU: 10, MemoryMB: 32},
		Provider: "nomad", CPU: 10, MemoryMB: 32,
	}
}

func open(t testing.TB, s jobs.Settings) *Fleet {
	t.Helper()
	conf := api.DefaultConfig()
	conf.Address = nomad
	f, err := Open(Config{API: conf, Jobs: s, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestContract(t *testing.T) {
	t.Parallel()
	newer := settings(t)
	newer.SidecarEnv = map[string]string{"TOPSAIL_RELEASE": "newer"}
	contract.Fleet(t, contract.FleetRig{JobFleet: open(t, settings(t)), Newer: open(t, newer)}, "contract")
}
