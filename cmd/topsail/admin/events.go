package admin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// topics are what the stream of events is about.
var topics = []string{"hello", "catalog", "replicas", "traffic", "decision", "audit", "cluster"}

func eventsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "events",
		Short: "Print events until Ctrl-C; with -o json, one object per line",
		Args:  cobra.NoArgs,
	}
	c.Flags().StringSlice("topic", nil, "of this topic only: "+strings.Join(topics, ", ")+"; may be repeated")
	_ = c.RegisterFlagCompletionFunc("topic", cobra.FixedCompletions(topics, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return single(c, followEvents)
}

func followEvents(k *call) error {
	wanted, _ := k.cmd.Flags().GetStringSlice("topic")
	for _, topic := range wanted {
		if !slices.Contains(topics, topic) {
			return misused("topic %q is unknown: use %s", topic, strings.Join(topics, ", "))
		}
	}
	err := k.Events(k.ctx, func(e apiclient.Event) error {
		if len(wanted) > 0 && !slices.Contains(wanted, e.Topic) {
			return nil
		}
		return k.event(e)
	}, "events")
	if k.ctx.Err() != nil {
		return nil // ctrl-C is how it ends
	}
	return err
}

// event prints one event in a line.
func (k *call) event(e apiclient.Event) error {
	if k.format != "json" {
		line := time.Now().Format(time.TimeOnly) + "  " + pad(e.Topic, 8) + "  " + summary(e)
		_, err := fmt.Fprintln(k.Out, k.Paint(screen.Clean(line)))
		return err
	}
	if !json.Valid(e.Data) {
		return fmt.Errorf("the server sends an event that is not valid JSON: %w", json.Unmarshal(e.Data, new(any)))
	}
	line, err := json.Marshal(struct {
		Topic string          `json:"topic"`
		Data  json.RawMessage `json:"data"`
	}{e.Topic, e.Data})
	if err == nil {
		_, err = k.Out.Write(append(line, '\n'))
	}
	return err
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-len(text)))
}

// summary is an event in words; its JSON where it is of a kind that is not known.
func summary(e apiclient.Event) string {
	said := ""
	switch e.Topic {
	case "hello":
		said = describe(e, func(h struct {
			Revision uint64 `json:"revision"`
			Me       api.Me `json:"me"`
		}) string {
			return fmt.Sprintf("%s as %s (%s), revision %d", h.Me.Mode, h.Me.Name, h.Me.Role, h.Revision)
		})
	case "catalog":
		said = describe(e, catalogWords)
	case "replicas":
		said = describe(e, replicasWords)
	case "traffic":
		said = describe(e, func(t api.TrafficNow) string {
			text := queried(t)
			if len(t.Apps) > 0 && t.Apps[0].Attainment != nil {
				text += fmt.Sprintf("; %s: %s within its SLO", t.Apps[0].App, share(t.Apps[0].Attainment))
			}
			return text
		})
	case "decision":
		said = describe(e, func(d serving.Decision) string {
			return fmt.Sprintf("%v from %d to %d, %s by %s: %s", d.ModelID, d.From, d.To, d.Outcome, d.Rule, d.Reason)
		})
	case "audit":
		said = describe(e, func(a serving.AuditEntry) string { return fmt.Sprintf("%s: %s %s %s", a.Who, a.Action, a.Kind, a.Name) })
	case "cluster":
		said = describe(e, func(c api.Cluster) string {
			words := []string{fmt.Sprintf("%d processes, %d servers, %d alarms", len(c.Processes), len(c.Servers), len(c.Alarms))}
			for _, a := range c.Alarms {
				words = append(words, a.Severity+": "+a.Text)
			}
			return strings.Join(words, "; ")
		})
	}
	if said == "" {
		return screen.Short(string(e.Data), 500)
	}
	return said
}

// describe is empty for data of another type.
func describe[T any](e apiclient.Event, words func(T) string) string {
	var data T
	if json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	return words(data)
}

// gone is an object that was deleted.
type gone struct{ Kind, Name string }

func catalogWords(c struct {
	Revision uint64        `json:"revision"`
	Whole    bool          `json:"whole"`
	Apps     []serving.App `json:"apps"`
	Models   []api.Model   `json:"models"`
	Versions []api.Version `json:"versions"`
	Gone     []gone        `json:"gone"`
}) string {
	if c.Whole {
		return fmt.Sprintf("revision %d: %d apps, %d models, %d versions", c.Revision, len(c.Apps), len(c.Models), len(c.Versions))
	}
	words := []string{fmt.Sprintf("revision %d", c.Revision)}
	for _, a := range c.Apps {
		words = append(words, "app "+a.Name)
	}
	for _, m := range c.Models {
		words = append(words, "model "+m.Name)
	}
	for _, v := range c.Versions {
		words = append(words, "version "+v.ModelID.String())
	}
	for _, g := range c.Gone {
		words = append(words, g.Kind+" "+g.Name+" is deleted")
	}
	return strings.Join(words, "; ")
}

// replicasEvent is replicas as they are now.
type replicasEvent struct {
	Whole   bool          `json:"whole"` // what is not in it is gone
	Changed []api.Replica `json:"changed"`
	Gone    []string      `json:"gone"`
}

func replicasWords(r replicasEvent) string {
	if r.Whole {
		return fmt.Sprintf("%d replicas", len(r.Changed))
	}
	var words []string
	for _, one := range r.Changed {
		text := fmt.Sprintf("%s of %s:%s is %s", one.ID, one.Model, one.Version, one.State)
		if one.Reason != "" {
			text += " (" + one.Reason + ")"
		}
		words = append(words, text)
	}
	for _, id := range r.Gone {
		words = append(words, id+" has ended")
	}
	return strings.Join(words, "; ")
}
