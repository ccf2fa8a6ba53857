package admin

import (
	"cmp"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/internal/apiclient"
)

const group = "management"

// AddTo gives root the commands, in a group of their own, and --version. ApplyCommand is left to
// the caller, which may apply in another way.
func AddTo(root *cobra.Command) {
	root.AddGroup(&cobra.Group{ID: group, Title: "Management, through the API:"})
	root.Version = built()
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		appCommand(), modelCommand(), versionCommand(), replicaCommand(), policyCommand(), keyCommand(), artifactCommand(),
		decisionCommand(), eventsCommand(), auditCommand(), deployCommand(), importCommand(), predictCommand(), feedbackCommand(),
		rollbackCommand(), logsCommand(), topCommand(), usageCommand(), exportCommand(), backupCommand(), docsCommand(),
		countCommand("gateways", "gateway", "gateways"), countCommand("schedulers", "scheduler", "schedulers"),
		countCommand("management", "web", "management processes"),
	)
}

// countCommand sets how many processes of a role there are.
func countCommand(name, role, processes string) *cobra.Command {
	c := &cobra.Command{Use: name + " COUNT", Short: "Set the number of " + processes, Args: cobra.ExactArgs(1)}
	reason := c.Flags().String("reason", "", "reason, for the job's history and the audit log")
	return single(c, func(k *call) error {
		count, err := strconv.Atoi(k.args[0])
		if err != nil || count < 1 {
			return misused("%q is not a number of %s: use 1 or more", k.args[0], processes)
		}
		body := map[string]any{"count": count, "reason": *reason}
		r := apiclient.Request{Method: http.MethodPut, Path: []string{"cluster", "roles", role, "count"}, Body: body}
		return k.change(r, "%s: %d from now on", processes, count)
	})
}

// built is the version of this program, with the revision that it was built from.
func built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := cmp.Or(info.Main.Version, "(devel)")
	if revision := settings["vcs.revision"]; revision != "" && version == "(devel)" {
		version += " " + revision[:min(12, len(revision))]
	}
	if settings["vcs.modified"] == "true" && version[0] == '(' {
		version += " with changes"
	}
	return version + ", " + info.GoVersion
}

// noun is a command that has verbs.
func noun(c *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	c.GroupID = group
	serverFlags(c.PersistentFlags())
	c.Args = usage(cobra.NoArgs)
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(verbs...)
	return c
}

// single is a command without a noun.
func single(c *cobra.Command, do func(*call) error) *cobra.Command {
	c.GroupID = group
	serverFlags(c.Flags())
	return verb(c, do)
}

// verb makes a command of what is done with the API.
func verb(c *cobra.Command, do func(*call) error) *cobra.Command {
	c.Args = usage(c.Args)
	c.RunE = func(c *cobra.Command, args []string) error {
		k, err := newCall(c, args)
		if err != nil {
			return err
		}
		defer k.Close()
		return do(k)
	}
	return c
}

// takes is a command with an argument of each kind.
func takes(use, short string, kinds ...names) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(len(kinds)), ValidArgsFunction: complete(kinds...)}
}

// takesVersion is a command about one version, written as MODEL:VERSION or as two arguments.
func takesVersion(use, short string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.RangeArgs(1, 2), ValidArgsFunction: complete(versionNames)}
}

// usage marks what is wrong with arguments as the caller's mistake.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(c, args); err != nil {
			return misused("%w: see `%s --help`", err, c.CommandPath())
		}
		return nil
	}
}
