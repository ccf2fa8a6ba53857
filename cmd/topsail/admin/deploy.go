package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

func deployCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "deploy MODEL (--bundle PATH | --image IMAGE | -- COMMAND…)",
		Short: "Deploy a model: upload, register, link, and wait until it is ready",
		Long: "Deploys a version of a model and makes it the current one. A bundle is a zip archive, a folder with a manifest.json,\n" +
			"or the digest of an uploaded one; instead, give a command or, on a cluster, an image. With --app the app is\n" +
			"created if it does not exist, linked to the model, and given the bundle's example of an input if it has none.",
		Args: cobra.MinimumNArgs(1),
		Example: "  topsail deploy iris --bundle iris.zip --app flowers --default -1\n" +
			"  topsail deploy echo --input-type strings --dir /srv/echo -- python3 -m topsail echo:Echo",
	}
	f := c.Flags()
	f.String("bundle", "", "the bundle: a zip archive, a folder, or a digest")
	runFlags(c)
	f.String("version", "", "name of the version (default: the number after the highest)")
	deployFlags(c)
	return single(c, deploy)
}

// deployFlags say how a version is registered, and what comes after.
func deployFlags(c *cobra.Command) {
	f := c.Flags()
	f.Bool("keep-current", false, "keep the current version")
	replaces(c)
	replacesContract(c)
	tellsCommit(c)
	f.String("app", "", "link the model to this app, and create the app if it does not exist")
	f.Duration("slo", defaultSLO, "for a new app: time from receiving a query to its answer")
	f.String("default", "", "for a new app: the answer when no model answers in time")
	f.Duration("wait", 5*time.Minute, "how long to wait until a replica is ready; 0 does not wait")
}

func deploy(k *call) error {
	own, command := k.split()
	if len(own) != 1 {
		return misused("name one model; put a command after --")
	}
	members, err := k.runMembers(command)
	if err != nil {
		return err
	}
	bundle := text(k.cmd, "bundle")
	if bundle == "" && len(command) == 0 && members["image"] == nil && members["container_addr"] == nil && members["service"] == nil {
		return misused("name what to deploy: --bundle PATH, --image IMAGE, --service NAME, or a command after --")
	}
	if err := serving.CheckModelName(own[0]); err != nil {
		return usageError{err}
	}
	return k.deploy(serving.ModelID{Model: own[0], Version: text(k.cmd, "version")}, bundle, members)
}

// deploy does one step after the other; each says what it did, so that a person knows
// where it stopped.
func (k *call) deploy(id serving.ModelID, bundle string, members map[string]any) error {
	d := &deployment{call: k, progress: k.Progress(), id: id}
	defer d.progress.End()
	if err := d.upload(bundle, members); err != nil {
		return err
	}
	if err := d.register(members); err != nil {
		return err
	}
	if err := d.link(text(k.cmd, "app")); err != nil {
		return d.left(err)
	}
	if err := d.wait(); err != nil {
		return d.left(err)
	}
	return d.done()
}

// left adds to an error what exists of the deployment, and the commands that remove it.
func (d *deployment) left(err error) error {
	var m api.Model
	if _, unknown := d.Get(d.ctx, &m, nil, "models", d.id.Model); unknown != nil {
		return err
	}
	var commands []string
	switch {
	case m.Current == d.id.Version && m.Previous != "":
		commands = append(commands, "rollback "+m.Name, "version delete "+d.id.String())
	case len(m.Versions) > 1:
		commands = append(commands, "version delete "+d.id.String())
	default:
		for _, app := range m.Apps {
			commands = append(commands, "app unlink "+app+" "+m.Name)
		}
		commands = append(commands, "model delete "+m.Name)
	}
	return fmt.Errorf("%w\n%v stays registered; to remove it: topsail %s", err, d.id, screen.Clean(strings.Join(commands, " && topsail ")))
}

// deployment is a version on its way.
type deployment struct {
	*call
	progress *screen.Progress
	id       serving.ModelID
	version  api.Version     // as it is registered
	raw      json.RawMessage // the same
}

// upload stores the bundle and puts its digest into the members.
func (d *deployment) upload(path string, members map[string]any) error {
	switch {
	case path == "":
		return nil
	case strings.HasPrefix(path, "sha256:"):
		members["bundle"] = path
		return nil
	}
	stored, _, err := d.push(d.ctx, path)
	if err != nil {
		return err
	}
	d.progress.Step("bundle %s is stored", stored.Digest)
	members["bundle"] = stored.Digest
	return nil
}

// register registers the version. Where it is to have no certain name, it is the version with
// the same bundle, or the next number that is free.
func (d *deployment) register(members map[string]any) error {
	if err := d.locate(members); err != nil {
		return err
	}
	if d.id.Version != "" {
		return d.registerAs(d.id.Version, members)
	}
	for {
		names, err := d.names(members["bundle"])
		if err != nil {
			return err
		}
		for _, name := range names {
			err := d.registerAs(name, members)
			if p, ok := errors.AsType[*apiclient.Problem](err); !ok || p.Code != "exists" {
				return err
			}
		}
		if !retry.Sleep(d.ctx, pollEvery) {
			return d.ctx.Err()
		}
	}
}

// names are those that the version may have: of the newest one with the same bundle, and the
// number after the highest.
func (d *deployment) names(bundle any) ([]string, error) {
	versions, _, err := items[api.Version](d.call, 0, nil, "models", d.id.Model, "versions")
	if p, ok := errors.AsType[*apiclient.Problem](err); ok && p.Status == http.StatusNotFound {
		return []string{"1"}, nil
	}
	same, highest := "", 0
	for _, v := range versions {
		n, err := strconv.Atoi(v.ModelID.Version)
		if err != nil || n >= 1e9 {
			continue
		}
		if n > highest && bundle != nil && v.Bundle == bundle && !d.flag("replace") {
			same = v.ModelID.Version
		}
		highest = max(highest, n)
	}
	next := strconv.Itoa(highest + 1)
	if same != "" {
		return []string{same, next}, err
	}
	return []string{next}, err
}

func (d *deployment) registerAs(name string, members map[string]any) error {
	members["version"] = name
	r := create(members, "models", d.id.Model, "versions")
	r.Query = d.registration()
	var err error
	if d.raw, err = d.Do(d.ctx, &d.version, d.contract(r)); err != nil {
		return err
	}
	d.id.Version = name
	d.progress.Step("%v is registered", d.id)
	return nil
}

// locate makes the folder of a command count from here, and not from where the server was
// started. The nodes of a cluster have other folders.
func (d *deployment) locate(members map[string]any) error {
	dir, _ := members["dir"].(string)
	if members["command"] == nil || filepath.IsAbs(dir) {
		return nil
	}
	var me api.Me
	if _, err := d.Get(d.ctx, &me, nil, "me"); err != nil || me.Mode != "local" {
		return err
	}
	at, err := filepath.Abs(dir)
	members["dir"] = at
	return err
}

// link links the model to an app, and creates the app if it does not exist.
func (d *deployment) link(name string) error {
	if name == "" {
		return nil
	}
	var app serving.App
	ask := func() error {
		_, err := d.Do(d.ctx, &app, d.contract(put(nil, "apps", name, "links", d.id.Model)))
		return err
	}
	err := ask()
	if is(err, http.StatusNotFound) {
		if err = d.makeApp(name); !is(err, http.StatusConflict) {
			return err
		}
		err = ask() // it has been made meanwhile
	}
	if err != nil {
		return err
	}
	d.progress.Step("app %s is linked to %s", name, d.id.Model)
	if example := d.example(); app.Example == "" && example != "" {
		_, err = d.Do(d.ctx, nil, patch(map[string]any{"example": example}, "apps", name))
	}
	return err
}

// is says whether the API has refused with a status.
func is(err error, status int) bool {
	p, ok := errors.AsType[*apiclient.Problem](err)
	return ok && p.Status == status
}

// makeApp makes an app that asks the model.
func (d *deployment) makeApp(name string) error {
	slo, _ := d.cmd.Flags().GetDuration("slo")
	body := map[string]any{
		"name": name, "input_type": d.version.InputType, "latency_slo_micros": slo.Microseconds(),
		"default_output": text(d.cmd, "default"), "models": []string{d.id.Model},
	}
	if d.version.Signature != nil {
		body["signature"] = d.version.Signature
	}
	if example := d.example(); example != "" {
		body["example"] = example
	}
	_, err := d.Do(d.ctx, nil, create(body, "apps"))
	if err == nil {
		d.progress.Step("app %s is created and linked to %s", name, d.id.Model)
	}
	return err
}

// longestExample is the size in bytes from which on an example is not shown.
const longestExample = 16 << 10

// example is the version's, as its bundle has it, for an app without one; empty: none.
func (d *deployment) example() string {
	if len(d.version.Example) > longestExample {
		return ""
	}
	return d.version.Example
}

const pollEvery = 300 * time.Millisecond

// wait waits until a replica is ready, and says what the others do.
func (d *deployment) wait() error {
	within, err := d.cmd.Flags().GetDuration("wait")
	if err != nil || within < 0 {
		return misused("--wait must be a time, such as 5m, or 0")
	}
	if d.unused() {
		d.progress.Step("%v gets replicas when it is current, or a policy names it", d.id)
		return nil
	}
	if within == 0 || d.needsNone() {
		return nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, within)
	defer cancel()
	query, begun, last := url.Values{"model": {d.id.Model}, "version": {d.id.Version}}, time.Now(), "no replica has started"
	if host := d.version.HostedBy; host != "" { // which loads the version when it is asked
		query = url.Values{"model": {host}}
	}
	for {
		replicas, _, err := items[api.Replica](d.call, 0, query, "replicas")
		if err != nil {
			return err
		}
		for _, r := range replicas {
			if r.State == "ready" {
				d.progress.Step("%s is ready after %s", r.ID, screen.Micros(max(1, time.Since(begun).Microseconds())))
				return nil
			}
			last = strings.TrimSuffix(r.State+": "+r.Reason, ": ")
		}
		d.progress.Say("waiting for a replica of %v (%s)", d.id, last)
		if !retry.Sleep(ctx, pollEvery) {
			if d.ctx.Err() != nil {
				return d.ctx.Err()
			}
			return fmt.Errorf("no replica of %v is ready after %v (%s); Topsail keeps trying: see `topsail logs %[1]v`", d.id, within, last)
		}
	}
}

// needsNone says that there may be no replica until there is a query.
func (d *deployment) needsNone() bool {
	return d.version.Replicas == 0 && d.version.Service == nil
}

// unused says that nothing asks the version yet, so that it gets no replicas.
func (d *deployment) unused() bool {
	return d.flag("keep-current") && !d.version.Current && len(d.version.UsedBy) == 0
}

func (d *deployment) done() error {
	d.progress.End()
	if d.format == "json" {
		return d.json(d.raw)
	}
	d.say("%v is deployed", d.id)
	if app := text(d.cmd, "app"); app != "" {
		input := "INPUT"
		if d.version.Example != "" {
			input = "'" + strings.ReplaceAll(d.version.Example, "'", `'\''`) + "'"
		}
		fmt.Fprintf(d.Err, "query it with: topsail predict %s %s\n", screen.Clean(app), screen.Clean(input))
	}
	return nil
}

// tellsCommit gives a command the flag that says what commit versions are made of.
func tellsCommit(c *cobra.Command) {
	c.Flags().String("commit", "", "commit of the source, which the version shows (default: what git has checked out here; \"\" for none)")
}

// commit is the one that --commit says, or else the one that is checked out here.
func (k *call) commit() string {
	if k.cmd.Flags().Changed("commit") {
		return text(k.cmd, "commit")
	}
	return checkedOut(k.ctx, "")
}

// gitWithin is how long git may take, which looks at every file for changes.
const gitWithin = 2 * time.Second

// checkedOut is the commit that git has checked out in a folder, with -dirty where files
// differ from it. It is empty where there is none, or no git.
func checkedOut(ctx context.Context, folder string) string {
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	git := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
	git.Dir, git.Env, git.WaitDelay = folder, append(os.Environ(), "GIT_OPTIONAL_LOCKS=0"), time.Second
	out, err := git.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
