package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/imports"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
)

func importCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import PATH",
		Short: "Deploy models of MLServer, Triton or TorchServe from their files",
		Long: "Makes a bundle of each model at a path, and deploys it as `topsail deploy` does. The path is a folder with a\n" +
			"model-settings.json (MLServer) or a config.pbtxt (Triton), a .mar (TorchServe), or a folder of these. What cannot\n" +
			"be brought is named with its reason. With --dry-run it lists all that and deploys nothing.",
		Args: cobra.ExactArgs(1),
		Example: "  topsail import models --dry-run\n" +
			"  topsail import models/iris --require scikit-learn==1.5.2 --app iris --default -1",
	}
	f := changes(c).Flags()
	f.String("python", "", "version of Python that the models were made with (default: that of python3 on PATH)")
	f.StringArray("require", nil, "a package of every model, as in scikit-learn==1.5.2, in the place of what files say; may be repeated")
	deployFlags(c)
	return single(c, importModels)
}

func importModels(k *call) (err error) {
	options, err := k.importOptions()
	if err != nil {
		return err
	}
	found, err := imports.Find(k.args[0], options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	if k.dryRun() {
		return k.showFound(found)
	}
	models := map[string]bool{}
	for _, v := range found.Versions {
		models[v.Model] = true
	}
	if text(k.cmd, "app") != "" && len(models) > 1 {
		return misused("--app is for one model, and there are %d to deploy: import them one by one", len(models))
	}
	for _, r := range found.Refused {
		fmt.Fprintln(k.Err, screen.CleanLines(refusedLine(r)))
	}
	for _, v := range found.Versions {
		for _, note := range v.Notes {
			fmt.Fprintln(k.Err, screen.CleanLines(noteLine(v, note)))
		}
		if err := k.importVersion(v); err != nil {
			return fmt.Errorf("%v: %w", id(v), err)
		}
	}
	if len(found.Versions) == 0 {
		return errors.New("there is nothing to deploy")
	}
	return nil
}

// importOptions are those of the flags, and the Python that is here.
func (k *call) importOptions() (o imports.Options, err error) {
	if o.Require, err = k.cmd.Flags().GetStringArray("require"); err != nil {
		return o, err
	}
	for _, line := range o.Require {
		if name, _ := bundle.RequiredPackage(line); name == "" {
			return o, misused("--require takes a package such as scikit-learn==1.5.2, and not %q", line)
		}
	}
	if o.Python = text(k.cmd, "python"); o.Python != "" {
		return o, nil
	}
	said, err := exec.CommandContext(k.ctx, "python3", "-c", `import sys; print("%d.%d" % sys.version_info[:2])`).Output()
	if err != nil {
		return o, misused("python3 does not say its version (%w): name that of the models by --python, as in --python 3.11", err)
	}
	o.Python = strings.TrimSpace(string(said))
	return o, nil
}

// importVersion makes the bundle of a version, and deploys it.
func (k *call) importVersion(v *imports.Version) error {
	dir, err := os.MkdirTemp("", "topsail-import-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := v.Write(dir); err != nil {
		return err
	}
	manifest := *v.Manifest
	manifest.Files = nil // which packing fills in
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, bundle.ManifestName), text, 0o600); err != nil {
		return err
	}
	return k.deploy(v.ModelID, dir, importMembers(v))
}

// importMembers are the members of a version that its bundle does not say.
func importMembers(v *imports.Version) map[string]any {
	members := map[string]any{}
	if v.Replicas > 0 {
		members["replicas"] = v.Replicas
	}
	if v.Batch != (serving.BatchSpec{}) {
		members["batch"] = v.Batch
	}
	if v.GPUs > 0 {
		members["resources"] = serving.Resources{GPU: serving.GPU{Count: v.GPUs}}
	}
	return members
}

// showFound lists what would be deployed, and what cannot be.
func (k *call) showFound(f *imports.Found) error {
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	t := screen.NewTable("MODEL", "SOURCE", "RUNTIME", "INPUTS", "OUTPUTS", "RUNS AS", "REQUIREMENTS")
	for _, v := range f.Versions {
		m := v.Manifest
		inputs := tensorsText(m.Signature.InputTensors())
		if m.InputType != 0 {
			inputs = inputType(m.InputType)
		}
		t.Row(id(v), v.Source, m.Runtime+" "+m.Python, inputs, tensorsText(m.Signature.OutputTensors()), runsAs(v), strings.Join(m.Requirements, ", "))
	}
	if len(f.Versions) > 0 || k.format == "json" {
		err = k.show(raw, t)
	}
	for _, v := range f.Versions {
		for _, note := range v.Notes {
			k.say("%s", noteLine(v, note))
		}
	}
	for _, r := range f.Refused {
		k.say("%s", refusedLine(r))
	}
	return err
}

// id is the version as people write it. One without a name is the next number.
func id(v *imports.Version) string { return strings.TrimSuffix(v.ModelID.String(), ":") }

func noteLine(v *imports.Version, note string) string { return "! " + id(v) + ": " + note }

func refusedLine(r imports.Refused) string {
	return "- " + r.Name + " (" + r.Source + ") is not brought: " + r.Why
}

func tensorsText(all []serving.Tensor) string {
	var list []string
	for _, t := range all {
		list = append(list, t.Name+" "+t.String())
	}
	return strings.Join(list, ", ")
}

func runsAs(v *imports.Version) string {
	var list []string
	if v.Replicas > 1 {
		list = append(list, fmt.Sprintf("%d replicas", v.Replicas))
	}
	if v.GPUs > 0 {
		list = append(list, "on a GPU")
	}
	if v.Batch != (serving.BatchSpec{}) {
		list = append(list, "batches "+batches(v.Batch))
	}
	return strings.Join(list, ", ")
}
