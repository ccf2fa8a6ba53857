package admin

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/web/api"
)

// StreamCommands are what is done with streams through the API. They are verbs of the role
// that serves streams.
func StreamCommands() []*cobra.Command {
	list := verb(&cobra.Command{Use: "list", Short: "List the streams, and which are suspended", Args: cobra.NoArgs}, listStreams)
	suspend := changes(takes("suspend NAME", "Suspend a stream; new records wait", streamNames))
	suspend.Flags().String("reason", "", "reason, shown to others")
	suspend.Example = "  topsail stream suspend wine.models --reason 'version 7 is bad'"
	resume := changes(takes("resume NAME", "Resume a stream", streamNames))
	forget := deletes(takes("delete NAME", "Forget a stream that no process serves", streamNames))
	route := changes(takes("map NAME DATATYPE=APP[,APP]...", "Set which apps predict the records that name a data type; DATATYPE= restores the configuration", streamNames))
	route.Args = cobra.MinimumNArgs(2)
	route.Example = "  topsail stream map wine red=red-wine white=white-wine,tasting"
	commands := []*cobra.Command{list, verb(suspend, suspendStream), verb(resume, resumeStream), verb(route, mapStream), verb(forget, deleteStream)}
	for _, c := range commands {
		serverFlags(c.Flags())
	}
	return commands
}

func streamNames(k *call) ([]string, error) {
	all, _, err := items[api.Stream](k, 0, nil, "streams")
	return each(all, func(s api.Stream) string { return s.Name }), err
}

func listStreams(k *call) error {
	streams, raw, err := items[api.Stream](k, 0, nil, "streams")
	if err != nil {
		return err
	}
	t := screen.NewTable("STREAM", "KIND", "APP", "INPUT", "OUTPUT", "DEAD LETTERS", "LAG", "STATE")
	for _, s := range streams {
		t.Row(s.Name, string(s.Kind), streamApps(s), strings.Join(s.Input, ", "), s.Output, s.DeadLetter, lag(s.Now), k.streamState(s))
	}
	return k.showList(raw, t, "no stream has been served yet: add a [[stream]] or a [[model_stream]] to the configuration")
}

// streamApps are the apps of a stream, with what records name for those that were set at runtime.
func streamApps(s api.Stream) string {
	var all []string
	if s.App != "" {
		all = append(all, s.App)
	}
	for _, named := range slices.Sorted(maps.Keys(s.Apps)) {
		all = append(all, named+"="+s.Apps[named])
	}
	return strings.Join(all, ", ")
}

// lag is how many records wait, as far as it is known.
func lag(now *api.StreamNow) string {
	if now == nil || now.Lag == nil {
		return "?"
	}
	return strconv.FormatInt(*now.Lag, 10)
}

// streamState says whether a stream is suspended, and why, or else what it cannot do.
func (k *call) streamState(s api.Stream) string {
	p := s.Suspension
	switch {
	case p != nil:
	case s.Now == nil:
		return "not served"
	case len(s.Now.Conditions) > 0:
		return strings.Join(s.Now.Conditions, "; ")
	default:
		return "open"
	}
	state := "suspended " + screen.Ago(k.now, p.Since)
	if p.By != "" {
		state += " by " + p.By
	}
	if p.Reason != "" {
		state += ": " + p.Reason
	}
	return state
}

func suspendStream(k *call) error {
	body := map[string]string{}
	if reason := text(k.cmd, "reason"); reason != "" {
		body["reason"] = reason
	}
	return k.change(put(body, "streams", k.args[0], "suspension"), "stream %s is suspended; resume it with `topsail stream resume %[1]s`", k.args[0])
}

func resumeStream(k *call) error {
	return k.change(deletion("streams", k.args[0], "suspension"), "stream %s is resumed", k.args[0])
}

func mapStream(k *call) error {
	apps := map[string]any{}
	for _, pair := range k.args[1:] {
		named, app, ok := strings.Cut(pair, "=")
		if !ok || named == "" {
			return misused("write DATATYPE=APP, such as red=red-wine, and not %q", pair)
		}
		if apps[named] = app; app == "" {
			apps[named] = nil
		}
	}
	return k.change(patch(map[string]any{"apps": apps}, "streams", k.args[0]),
		"the apps of stream %s are changed; `topsail stream list` shows them", k.args[0])
}

func deleteStream(k *call) error {
	return k.remove(deletion("streams", k.args[0]), "Forget stream %s?", "stream %s is forgotten", k.args[0])
}
