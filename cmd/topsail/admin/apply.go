package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"topsail/cmd/topsail/admin/client"
	"topsail/cmd/topsail/admin/screen"
	"topsail/cmd/topsail/config"
	"topsail/serving"
	"topsail/web/api"
)

// ApplyCommand brings a configuration file's apps and models in through the API. It has
// the flag --file; the caller may give it another way to apply, beside that one.
func ApplyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "apply",
		Short: "Bring the apps and models of a configuration file in",
		Long: "Brings the apps and models of a configuration file in, all or nothing, and changes nothing that is so already. It shows\n" +
			"what it will do and asks. With --dry-run it exits with 2 if there is something to do.",
		Args:    cobra.NoArgs,
		Example: "  topsail apply -f topsail.toml\n  topsail apply -f topsail.toml --prune --yes",
	}
	c.Flags().StringP("file", "f", "", "the configuration file")
	c.Flags().Bool("prune", false, "delete what an earlier file brought in and this one does not have")
	replaces(c)
	tellsCommit(c)
	deletes(c)
	return single(c, apply)
}

// replaces gives a command the flag that lets a version become something else.
func replaces(c *cobra.Command) {
	c.Flags().Bool("replace", false, "let a version become something else under its name; its replicas start anew, and queries wait for them")
}

func apply(k *call) error {
	path := text(k.cmd, "file")
	if path == "" {
		return misused("name the configuration file with --file")
	}
	cfg, err := config.Load(path, os.Environ(), nil)
	if err != nil {
		return fmt.Errorf("%s cannot be applied:\n%w", path, err)
	}
	body, err := documentOf(cfg)
	if err != nil {
		return err
	}
	body.Prune, body.Replace = k.flag("prune"), k.flag("replace")
	r := create(body, "catalog")
	r.Query = url.Values{}
	if commit := k.commit(); commit != "" {
		r.Query.Set("commit", commit)
	}
	would, raw, err := k.planned(r)
	if err != nil {
		return err
	}
	if k.rehearses() || len(would.Changes) == 0 {
		return k.unchanged(would, raw)
	}
	if !k.flag("yes") {
		for _, line := range planLines(would) {
			fmt.Fprintln(k.Err, k.Paint(line))
		}
		sure, err := k.Ask(k.ctx, "Apply?")
		if err != nil {
			return err
		}
		if !sure {
			return errors.New("nothing was applied")
		}
	}
	return k.carryOut(r)
}

// planned is what a request would do.
func (k *call) planned(r client.Request) (*api.Plan, json.RawMessage, error) {
	r.Once, r.Query = "", maps.Clone(r.Query)
	r.Query.Set("dry_run", "true")
	would := &api.Plan{}
	raw, err := k.Do(k.ctx, would, r)
	return would, raw, err
}

// unchanged prints a plan that is not carried out, and says whether there was one.
func (k *call) unchanged(would *api.Plan, raw json.RawMessage) error {
	if k.format == "json" {
		if err := k.json(raw); err != nil {
			return err
		}
	}
	for _, line := range planLines(would) {
		k.say("%s", line)
	}
	if len(would.Changes) == 0 {
		k.say("nothing to change")
		return nil
	}
	return pending{}
}

func (k *call) carryOut(r client.Request) error {
	var done api.Plan
	raw, err := k.Do(k.ctx, &done, r)
	if err != nil {
		return err
	}
	if k.format == "json" {
		return k.json(raw)
	}
	for _, line := range planLines(&done) {
		k.say("%s", line)
	}
	k.say("applied")
	return nil
}

// planLines are the changes, and what gives way to the file.
func planLines(p *api.Plan) []string {
	lines := changeLines(p.Changes)
	for _, note := range p.Notes {
		if note.Level == "warn" {
			lines = append(lines, screen.Clean("! "+note.Text))
		}
	}
	return lines
}

// documentOf is the apps and versions of a configuration, as the API takes them.
func documentOf(cfg *config.Config) (*api.Catalog, error) {
	doc := &api.Catalog{Apps: []api.App{}, Versions: []api.Version{}, Current: cfg.Current}
	for _, a := range cfg.Apps {
		one, err := appOf(a)
		if err != nil {
			return nil, fmt.Errorf("app %q cannot be written as JSON: %w", a.Name, err)
		}
		doc.Apps = append(doc.Apps, one)
	}
	for _, v := range cfg.Versions {
		doc.Versions = append(doc.Versions, versionOf(v))
	}
	return doc, nil
}

func appOf(a *serving.App) (api.App, error) {
	doc := api.App{
		Name: a.Name, Description: a.Description, InputType: a.InputType, DefaultOutput: a.DefaultOutput, Models: append([]string{}, a.Models...),
		OutputType: a.OutputType, Weight: a.Weight, Example: a.Example, RequireKey: a.RequireKey, Limit: a.Limit, Labels: a.Labels,
	}
	setMicros(&doc.SLO, a.SLO)
	setMicros(&doc.ColdStart, a.ColdStart)
	for _, s := range a.Stages {
		doc.Stages = append(doc.Stages, api.AppStage{Name: s.Name, Model: s.Model, After: s.After})
	}
	if a.Cache != (serving.CacheSpec{}) {
		doc.Cache = &api.Cache{Off: a.Cache.Off, Round: a.Cache.Round}
		setMicros(&doc.Cache.TTL, a.Cache.TTL)
	}
	var err error
	doc.Policy, err = json.Marshal(a.Policy)
	return doc, err
}

func versionOf(v *serving.Version) api.Version {
	c := v.Container
	doc := api.Version{
		Model: v.Model, Version: v.Version, Description: v.Description, InputType: v.InputType, InputLength: v.InputLength, Labels: v.Labels, Replicas: &v.Replicas,
		Resources: v.Resources, Bundle: c.Bundle, BundleURL: c.BundleURL, Command: c.Command, Dir: c.Dir, Env: c.Env, Watch: c.Watch,
		ContainerAddr: c.Addr, Protocol: c.Protocol, ContainerPort: c.Port, Connections: c.Connections, Driver: c.Driver, Image: c.Image, Artifacts: c.Artifacts,
		Secrets: c.Secrets, Stages: stageDocuments(v.Stages), Host: v.Host, HostedBy: v.HostedBy, Prepared: v.Prepared, UsedBy: []string{},
	}
	if v.Batch != (serving.BatchSpec{}) {
		doc.Batch = &api.Batch{Strategy: v.Batch.Strategy, MaxSize: v.Batch.MaxSize, Pad: v.Batch.Pad}
		setMicros(&doc.Batch.Delay, v.Batch.Delay)
	}
	if s := v.Scale; s != nil {
		doc.Scale = &api.Scale{
			Min: s.Min, Max: s.Max, Metric: s.Metric, Target: s.Target, Utilisation: s.Utilisation,
			StepUp: s.StepUp, StepDown: s.StepDown, DeadBand: s.DeadBand,
		}
		setMicros(&doc.Scale.Idle, s.Idle)
		setMicros(&doc.Scale.CooldownUp, s.CooldownUp)
		setMicros(&doc.Scale.CooldownDown, s.CooldownDown)
	}
	return doc
}

// setMicros sets a member in microseconds.
func setMicros[T ~int64](to *T, d time.Duration) { *to = T(d.Microseconds()) }
