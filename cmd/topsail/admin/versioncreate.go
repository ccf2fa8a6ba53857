package admin

import (
	"io"
	"maps"
	"net/url"
	"os"
	"reflect"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
)

func createVersion() *cobra.Command {
	c := changes(&cobra.Command{
		Use:   "create MODEL:VERSION [-- COMMAND…]",
		Short: "Register a version; `topsail deploy` also uploads, links and waits",
		Args:  cobra.MinimumNArgs(1),
		Example: "  topsail version create iris:2 --bundle sha256:…\n" +
			"  topsail version create wine-forest:2 --input-type doubles --dir /srv/wine -- python3 -m topsail wine:Wine",
	})
	runFlags(c)
	c.Flags().Bool("keep-current", false, "keep the current version")
	replaces(c)
	replacesContract(c)
	tellsCommit(c)
	c.Flags().StringP("file", "f", "", "JSON of the version, as in the API; flags take precedence; - is standard input")
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
		return k.change(k.contract(r), "%v is registered; `topsail replica list --model %s` shows its replicas", id, id.Model)
	})
}

// replacesContract adds the flag of what may change the inputs that clients have to send.
func replacesContract(c *cobra.Command) *cobra.Command {
	c.Flags().Bool("replace-contract", false, "let apps ask what takes inputs of another length, although their clients are refused then")
	return c
}

// contract has a request allow what --replace-contract does, where that is given.
func (k *call) contract(r apiclient.Request) apiclient.Request {
	if k.flag("replace-contract") {
		r.Query = maps.Clone(r.Query)
		if r.Query == nil {
			r.Query = url.Values{}
		}
		r.Query.Set("replace_contract", "true")
	}
	return r
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
	fieldFlags(c, reflect.TypeFor[serving.Version](), true)
	c.Flags().Int("min", 0, "with --max: least replicas")
	c.Flags().Int("max", 0, "most replicas; their number follows demand")
}

// runMembers are the members of a version that flags and a command give, and no others.
func (k *call) runMembers(command []string) (map[string]any, error) {
	body, err := k.members(reflect.TypeFor[serving.Version]())
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
	if body["container_addr"] != nil {
		body["protocol"] = "v1" // only such containers listen
	}
	if k.cmd.Flags().Changed("min") || k.cmd.Flags().Changed("max") {
		if body["scale"], err = k.bounds(); err != nil {
			return nil, err
		}
	}
	if len(command) > 0 {
		body["command"] = command
	}
	return body, nil
}
