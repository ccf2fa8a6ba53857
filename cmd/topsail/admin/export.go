package admin

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
)

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
