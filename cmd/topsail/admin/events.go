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
		return k.event(e, len(wanted) == 0)
	}, "events")
	if k.ctx.Err() != nil {
		return nil // ctrl-C is how it ends
	}
	return err
}

// event prints one event in a line; for people, who did not ask for it, none that says only that figures are others.
func (k *call) event(e apiclient.Event, brief bool) error {
	if k.format != "json" {
		said := k.summary(e)
		if brief && said == "" && (e.Topic == "traffic" || e.Topic == "replicas") {
			return nil
		}
		line := time.Now().Format(time.TimeOnly) + "  " + pad(e.Topic, 8) + "  " + said
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

// notice is what an event says has changed; of the first, who asks.
type notice struct {
	Me       api.Me `json:"me"`
	Revision uint64 `json:"revision"`
	Changed  []struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"changed"`
}

// summary is an event in words; its JSON where it is of a kind that is not known.
func (k *call) summary(e apiclient.Event) string {
	var n notice
	if !slices.Contains(topics, e.Topic) || json.Unmarshal(e.Data, &n) != nil {
		return screen.Short(string(e.Data), 500)
	}
	switch e.Topic {
	case "hello":
		return fmt.Sprintf("%s as %s (%s), revision %d", n.Me.Mode, n.Me.Name, n.Me.Role, n.Revision)
	case "cluster":
		var c api.Cluster
		if _, err := k.Get(k.ctx, &c, nil, "cluster"); err != nil {
			return err.Error() // the events go on
		}
		words := []string{fmt.Sprintf("%d processes, %d servers, %d alarms", len(c.Processes), len(c.Servers), len(c.Alarms))}
		for _, a := range c.Alarms {
			words = append(words, string(a.State)+": "+a.Detail)
		}
		return strings.Join(words, "; ")
	}
	var words []string
	if n.Revision > 0 {
		words = append(words, fmt.Sprintf("revision %d", n.Revision))
	}
	for _, one := range n.Changed {
		words = append(words, one.Kind+" "+one.Name)
	}
	return strings.Join(words, ", ")
}
