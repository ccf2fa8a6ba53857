package admin

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/web/api"
)

func usageCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show usage of apps and models since they were registered",
		Long: "Show the results of apps and models since they were registered, over all gateways and across restarts. " +
			"A request counts once, however often it was retried. " +
			"FAILED are the defaults of an app, and the errors of a model; MISSED are requests that a model answered too late or could not accept.",
		Args: cobra.NoArgs,
	}
	c.Flags().String("app", "", "of this app only")
	c.Flags().String("model", "", "of the versions of this model only")
	c.MarkFlagsMutuallyExclusive("app", "model")
	_ = c.RegisterFlagCompletionFunc("app", complete(appNames))
	_ = c.RegisterFlagCompletionFunc("model", complete(modelNames))
	return single(c, showUsage)
}

func showUsage(k *call) error {
	if app := text(k.cmd, "app"); app != "" {
		var one api.Usage
		raw, err := k.Get(k.ctx, &one, nil, "apps", app, "usage")
		if err != nil {
			return err
		}
		return k.showList([]json.RawMessage{raw}, k.usageRows([]api.Usage{one}), "")
	}
	all, raw, err := items[api.Usage](k, 0, k.parameters("model"), "usage")
	if err != nil {
		return err
	}
	return k.showList(raw, k.usageRows(all), "this key sees no apps and no models")
}

// usageRows has a row for each app and version, and below it one for each of its stages.
func (k *call) usageRows(all []api.Usage) *screen.Table {
	columns := []string{"OF", "SINCE", "USED", "CACHED", "FAILED", "MISSED", "MEAN", "MIN", "MAX", "LAST FAILURE"}
	if k.wide() {
		columns = append(columns, "POLICY", "SLO", "CANDIDATES", "DESCRIPTION")
	}
	t := screen.NewTable(columns...)
	for _, u := range all {
		name := "app " + u.App
		if u.Kind == "version" {
			name = u.Model + ":" + u.Version
		}
		row := append([]string{name, screen.Ago(k.now, u.Since)}, k.figures(u.Figures)...)
		if k.wide() {
			row = append(row, u.Policy, screen.Micros(u.SLO.Std().Microseconds()), strings.Join(u.Candidates, ", "), u.Description)
		}
		t.Row(row...)
		for _, s := range u.Stages {
			t.Row(append([]string{"  stage " + s.Stage, ""}, k.figures(s.Figures)...)...)
		}
	}
	return t
}

// shortFailure is how much of a failure's message has room in a table.
const shortFailure = 60

func (k *call) figures(f api.Figures) []string {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	last := ""
	if f.Last != nil {
		last = f.Last.Message
		if !k.wide() {
			last = screen.Short(last, shortFailure)
		}
		last = screen.Ago(k.now, f.Last.At.Truncate(time.Second)) + ": " + last
	}
	return []string{
		number(f.Usage), number(f.Cached), number(f.Failed), number(f.Missed),
		screen.Micros(int64(f.Mean + 0.5)), screen.Micros(f.Min.Std().Microseconds()), screen.Micros(f.Max.Std().Microseconds()), last,
	}
}
