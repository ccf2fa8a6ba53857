package admin

import (
	"encoding/json"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/serving"
)

func decisionCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the latest decisions and their reasons", Args: cobra.NoArgs}
	ofVersion(list)
	list.Flags().IntP("lines", "n", 20, "how many")
	return noun(&cobra.Command{Use: "decision", Short: "Decisions of the scheduler"}, verb(list, listDecisions))
}

const maxDecisions = 1000

func listDecisions(k *call) error {
	most, err := k.cmd.Flags().GetInt("lines")
	if err != nil || most < 1 || most > maxDecisions {
		return misused("--lines must be between 1 and %d", maxDecisions)
	}
	query := k.parameters("model", "version")
	query.Set("limit", strconv.Itoa(most))
	var answer struct {
		Items []json.RawMessage `json:"items"`
	}
	if _, err := k.Get(k.ctx, &answer, query, "decisions"); err != nil {
		return err
	}
	decisions, err := decode[serving.Decision](answer.Items)
	if err != nil {
		return err
	}
	t := screen.NewTable("WHEN", "VERSION", "FROM", "TO", "OUTCOME", "RULE", "REASON")
	for _, d := range decisions {
		t.Row(screen.Ago(k.now, d.At), d.String(), count(d.From), count(d.To), d.Outcome, d.Rule, d.Reason)
	}
	return k.showList(answer.Items, t, "the scheduler has decided nothing yet")
}
