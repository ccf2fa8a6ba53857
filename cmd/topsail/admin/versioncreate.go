package admin

import (
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"topsail/cmd/topsail/admin/screen"
	"topsail/serving"
)

func createVersion() *cobra.Command {
	c := changes(&cobra.Command{
		Use:   "create MODEL:VERSION [-- COMMAND…]",
		Short: "Register a version; `topsail deploy` does that and what goes with it",
		Args:  cobra.MinimumNArgs(1),
		Example: "  topsail version create iris:2 --bundle sha256:…\n" +
			"  topsail version create wine-forest:2 --input-type doubles --dir /srv/wine -- python3 -m topsail wine:Wine",
	})
	runFlags(c)
	c.Flags().Bool("keep-current", false, "leave the current version")
	replaces(c)
	tellsCommit(c)
	c.Flags().StringP("file", "f", "", "JSON of the version, as the API has it; flags win over it; - is standard input")
	return verb(c, func(k *call) error {
		own, command := k.split()
		id, err := oneVersion(own)
		if err != nil {
			return err
		}
		members, err := k.runMembers(command)
		if err != nil {
			return err
		}
		members["version"] = id.Version
		document, err := k.file()
		if err != nil {
			return err
		}
		body, err := merge(document, members)
		if err != nil {
			return err
		}
		r := create(body, "models", id.Model, "versions")
		r.Query = k.registration()
		return k.change(r, "%v is registered; `topsail replica list --model %s` shows its replicas", id, id.Model)
	})
}

// registration is how a version is registered, as the query has it.
func (k *call) registration() url.Values {
	query := url.Values{}
	for flag, name := range map[string]string{"keep-current": "keep_current", "replace": "replace"} {
		if k.flag(flag) {
			query.Set(name, "true")
		}
	}
	if commit := k.commit(); commit != "" {
		query.Set("commit", commit)
	}
	return query
}

// split divides the arguments where -- stood.
func (k *call) split() (own, command []string) {
	at := k.cmd.ArgsLenAtDash()
	if at < 0 {
		return k.args, nil
	}
	return k.args[:at], k.args[at:]
}

const maxFileBytes = 1 << 20

// file is what --file names; nil without it.
func (k *call) file() ([]byte, error) {
	path := text(k.cmd, "file")
	if path == "" {
		return nil, nil
	}
	return k.readFile(path, maxFileBytes)
}

// readFile reads a file of at most most bytes; - is standard input.
func (k *call) readFile(path string, most int64) ([]byte, error) {
	from := k.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		err = misused("%s is larger than %s", path, screen.Bytes(most))
	}
	return content, err
}

// runFlags say how a version is run.
func runFlags(c *cobra.Command) {
	f := c.Flags()
	f.String("description", "", "what people should know of it")
	f.String("input-type", "", "doubles, floats, ints, strings or bytes; a bundle says it itself")
	f.Int("input-length", 0, "elements of every input; 0 is any number")
	f.StringSlice("label", nil, "a word to find the version by; may be said again")
	f.Int("replicas", 1, "how many to run")
	f.Int("min", 0, "with --max: least replicas")
	f.Int("max", 0, "most replicas: their number follows demand")
	f.String("bundle-url", "", "where nodes fetch the bundle, if not from the management service")
	f.String("dir", "", "folder to start the command in")
	f.StringArray("env", nil, "a variable of the command, NAME=VALUE; may be said again")
	f.String("image", "", "on a cluster: image of the docker driver")
	f.String("driver", "", "on a cluster: raw_exec, exec or docker")
	f.Int("cpu", 0, "on a cluster: MHz of each replica")
	f.Int("memory", 0, "on a cluster: MiB of each replica")
	f.Int("gpus", 0, "GPUs that each replica has to itself")
	f.Int("gpu-memory", 0, "with --gpus: MiB of each GPU at the least")
	f.String("gpu-device", "", "with --gpus: which ones, such as nvidia/gpu/1g.10gb (default nvidia/gpu)")
	f.String("gpu-runtime", "", "with --gpus: runtime of the docker driver (default nvidia)")
	f.StringArray("artifact", nil, "on a cluster: a file that nodes fetch, [FOLDER=]CHECKSUM@URL; may be said again")
	f.StringArray("secret", nil, "on a cluster: a variable from an item of the job's Nomad variable, NAME=ITEM; may be said again")
	f.String("container-addr", "", "address of a container that already listens")
	f.String("protocol", "", "v1: the command or image listens on the port that PORT says, and speaks version 1; by default v2")
	f.Int("container-port", 0, "of an image of version 1 that listens on one port always: that port")
	f.Int("connections", 0, "to a container of version 1, with a batch in flight on each; 0 is 1")
	f.String("batch-strategy", "", "how batches are sized: aimd, quantile or fixed (default aimd)")
	f.Int("batch-size", 0, "most inputs in a batch, 0 is no cap; for fixed, the size")
	f.Duration("batch-delay", 0, "how long a batch may wait to fill, up to 1s")
	f.Bool("batch-pad", false, "for fixed: fill smaller batches up to the size")
	f.String("hosted-by", "", "the host whose replicas hold it, instead of some of its own; needs a bundle")
	f.Int("host-memory", 0, "make it a host that holds other models in so many MiB")
	if f.Lookup("bundle") == nil {
		f.String("bundle", "", "digest of the bundle to run, sha256:…")
	}
}

// runMembers are the members of a version that flags and a command give, and no others.
func (k *call) runMembers(command []string) (map[string]any, error) {
	f, body := k.cmd.Flags(), map[string]any{}
	for _, flag := range []string{"description", "input-type", "bundle-url", "dir", "image", "driver", "container-addr", "protocol", "bundle", "hosted-by"} {
		if f.Changed(flag) {
			body[strings.ReplaceAll(flag, "-", "_")] = text(k.cmd, flag)
		}
	}
	if f.Changed("container-addr") {
		body["protocol"] = "v1" // only such containers listen
	}
	for _, flag := range []string{"input-length", "replicas", "container-port", "connections"} {
		if f.Changed(flag) {
			body[strings.ReplaceAll(flag, "-", "_")], _ = f.GetInt(flag)
		}
	}
	if f.Changed("host-memory") {
		memory, _ := f.GetInt("host-memory")
		body["host"] = serving.HostSpec{MemoryMB: memory}
	}
	if f.Changed("label") {
		body["labels"], _ = f.GetStringSlice("label")
	}
	if batch := k.batch(); len(batch) > 0 {
		body["batch"] = batch
	}
	if f.Changed("min") || f.Changed("max") {
		bounds, err := k.bounds()
		if err != nil {
			return nil, err
		}
		body["scale"] = bounds
	}
	if r := k.resources(); r != (serving.Resources{}) {
		body["resources"] = r
	}
	for flag, member := range map[string]string{"env": "env", "secret": "secrets"} {
		variables, err := k.variables(flag)
		if err != nil {
			return nil, err
		}
		if len(variables) > 0 {
			body[member] = variables
		}
	}
	artifacts, err := k.artifacts()
	if err != nil {
		return nil, err
	}
	if len(artifacts) > 0 {
		body["artifacts"] = artifacts
	}
	if len(command) > 0 {
		body["command"] = command
	}
	return body, nil
}

// batch is what flags say of batches, and no more.
func (k *call) batch() map[string]any {
	f, batch := k.cmd.Flags(), map[string]any{}
	if f.Changed("batch-strategy") {
		batch["strategy"] = text(k.cmd, "batch-strategy")
	}
	if f.Changed("batch-size") {
		batch["max_size"], _ = f.GetInt("batch-size")
	}
	if f.Changed("batch-delay") {
		delay, _ := f.GetDuration("batch-delay")
		batch["delay_micros"] = delay.Microseconds()
	}
	if f.Changed("batch-pad") {
		batch["pad"] = k.flag("batch-pad")
	}
	return batch
}

// resources are those that flags ask for.
func (k *call) resources() serving.Resources {
	f := k.cmd.Flags()
	number := func(flag string) int {
		n, _ := f.GetInt(flag)
		return n
	}
	return serving.Resources{
		CPU: number("cpu"), MemoryMB: number("memory"),
		GPU: serving.GPU{Count: number("gpus"), MemoryMB: number("gpu-memory"), Device: text(k.cmd, "gpu-device"), Runtime: text(k.cmd, "gpu-runtime")},
	}
}

// variables are what a flag gives as NAME=VALUE.
func (k *call) variables(flag string) (map[string]string, error) {
	given, _ := k.cmd.Flags().GetStringArray(flag)
	variables := map[string]string{}
	for _, v := range given {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, misused("--%s takes NAME=VALUE", flag) // what was said may be a secret
		}
		variables[name] = value
	}
	return variables, nil
}

// artifacts are the files that nodes are to fetch, as [FOLDER=]CHECKSUM@URL.
func (k *call) artifacts() ([]serving.Artifact, error) {
	given, _ := k.cmd.Flags().GetStringArray("artifact")
	var list []serving.Artifact
	for _, one := range given {
		checksum, source, ok := strings.Cut(one, "@")
		if !ok || source == "" {
			return nil, misused("--artifact takes CHECKSUM@URL, such as sha256:…@https://models.example/weights.tar.gz, or FOLDER=CHECKSUM@URL")
		}
		folder, sum, named := strings.Cut(checksum, "=")
		if !named {
			folder, sum = "", checksum
		}
		list = append(list, serving.Artifact{Source: source, Checksum: sum, Destination: folder})
	}
	return list, nil
}
