package admin

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
)

// docsCommand prints docs/cli.md.
func docsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "docs",
		Short:  "Print the reference of all commands",
		Hidden: true,
		Args:   usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(Reference(c.Root()))
			return err
		},
	}
}

//go:embed introduction.md
var introduction string

// Reference is the page about all commands below root, in Markdown.
func Reference(root *cobra.Command) []byte {
	var page bytes.Buffer
	page.WriteString(introduction)
	for _, g := range append(root.Groups(), &cobra.Group{Title: "Other:"}) {
		commands := inGroup(root, g.ID)
		if len(commands) == 0 {
			continue
		}
		fmt.Fprintf(&page, "\n## %s\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range commands {
			describeCommand(&page, c)
		}
	}
	return page.Bytes()
}

// inGroup are the commands of a group that people see; help and completion explain
// themselves.
func inGroup(root *cobra.Command, id string) (found []*cobra.Command) {
	for _, c := range root.Commands() {
		if c.GroupID == id && !c.Hidden && c.Name() != "help" && c.Name() != "completion" {
			found = append(found, c)
		}
	}
	return found
}

func describeCommand(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "\n### %s\n\n%s.\n", c.CommandPath(), c.Short)
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n", c.Long)
	}
	verbs := inGroup(c, "")
	if c.Runnable() && (len(verbs) == 0 || c.LocalNonPersistentFlags().HasAvailableFlags()) {
		describeUse(w, c)
	}
	for _, v := range verbs {
		fmt.Fprintf(w, "\n**%s**: %s\n", v.CommandPath(), v.Short)
		if v.Long != "" {
			fmt.Fprintf(w, "\n%s\n", v.Long)
		}
		describeUse(w, v)
	}
}

// describeUse has the flags that are the command's own; those of the configuration are
// explained where it is.
func describeUse(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "\n```text\n%s\n", c.UseLine())
	configured := c.Flags().Lookup("log-level") != nil
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		common := f.Name == "help" || shared(f.Name) && c.Flag("timeout") != nil || configured && setting(f.Name)
		if !f.Hidden && !common {
			own.AddFlag(f)
		}
	})
	if own.HasAvailableFlags() {
		fmt.Fprintf(w, "\n%s", own.FlagUsages())
	}
	fmt.Fprint(w, "```\n")
	if configured {
		fmt.Fprint(w, "\nEvery setting of the [configuration](configuration.md) is a flag, too.\n")
	}
	if c.Example != "" {
		fmt.Fprintf(w, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
}

// shared are the flags that the introduction explains.
func shared(flag string) bool {
	return slices.Contains([]string{"server", "gateway", "key-file", "ca-file", "output", "timeout"}, flag)
}

func setting(flag string) bool {
	return slices.ContainsFunc(config.Keys(), func(k config.Key) bool { return k.Flag == flag })
}
