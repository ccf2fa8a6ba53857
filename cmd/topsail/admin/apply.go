package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// ApplyCommand brings a configuration file's apps and models in through the API. It has the flag
// --file; the caller may add another way to apply.
func ApplyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "apply",
		Short: "Apply the apps and models of a configuration file",
		Long: "Applies the apps and models of a configuration file, all or nothing, and leaves alone what already matches. It shows\n" +
			"what it will do and asks for confirmation. With --dry-run it exits with 2 if there is something to do.",
		Args:    cobra.NoArgs,
		Example: "  topsail apply -f topsail.toml\n  topsail apply -f topsail.toml --prune --yes",
	}
	c.Flags().StringP("file", "f", "", "the configuration file")
	c.Flags().Bool("prune", false, "delete what an earlier file added and this one lacks")
	replaces(c)
	replacesContract(c)
	tellsCommit(c)
	deletes(c)
	return single(c, apply)
}

// replaces gives a command the flag that allows a version to be redefined.
func replaces(c *cobra.Command) {
	c.Flags().Bool("replace", false, "allow redefining a version under its name; its replicas are replaced, and queries wait for them")
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
	body := documentOf(cfg)
	body.Prune, body.Replace = k.flag("prune"), k.flag("replace")
	r := create(body, "catalog")
	r.Query = url.Values{}
	if commit := k.commit(); commit != "" {
		r.Query.Set("commit", commit)
	}
	r = k.contract(r)
	would, raw, err := k.planned(r)
	if err != nil {
		return err
	}
	if k.dryRun() || len(would.Changes) == 0 {
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
func (k *call) planned(r apiclient.Request) (*api.Plan, json.RawMessage, error) {
	r.Query = maps.Clone(r.Query)
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

func (k *call) carryOut(r apiclient.Request) error {
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
func documentOf(cfg *config.Config) *api.Catalog {
	doc := &api.Catalog{Apps: []serving.App{}, Versions: []api.Version{}, Current: cfg.Current}
	for _, a := range cfg.Apps {
		one := *a
		one.Models, one.Origin = append([]string{}, a.Models...), ""
		doc.Apps = append(doc.Apps, one)
	}
	for _, v := range cfg.Versions {
		one := *v
		one.Origin = ""
		doc.Versions = append(doc.Versions, api.Version{Version: one, UsedBy: []string{}})
	}
	return doc
}

func exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export",
		Short: "Print all apps and versions as a configuration file",
		Long: "Prints all apps and versions as a configuration file, which `topsail apply` or `topsail local` reads. Variables of\n" +
			"containers are in it if the key may read them, and may be secrets: store the file accordingly.",
		Args:    cobra.NoArgs,
		Example: "  topsail export > topsail.toml\n  topsail export -o json",
	}
	c = single(c, export)
	output := c.Flags().Lookup("output")
	output.Usage, output.DefValue = "toml or json", "toml"
	return c
}

func export(k *call) error {
	r := apiclient.Request{Path: []string{"catalog"}}
	if k.format != "json" {
		r.Accept = "application/toml"
	}
	answer, err := k.Call(k.ctx, r)
	if err != nil {
		return err
	}
	if k.format == "json" {
		return k.json(answer.Body)
	}
	file := string(answer.Body)
	if k.Terminal {
		file = screen.CleanLines(file)
	}
	_, err = fmt.Fprint(k.Out, file)
	return err
}
