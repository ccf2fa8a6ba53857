package admin

import (
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
)

func feedbackCommand() *cobra.Command {
	c := &cobra.Command{
		Use:               "feedback APP",
		Short:             "Send feedback on an answer, through a gateway",
		GroupID:           group,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete(appNamesBeside),
		Example:           "  topsail feedback wine --query-id 4194304 --label 0\n  topsail feedback wine --uid ann --input '[1, 2]' --reward 0.5",
	}
	gatewayFlags(c.Flags(), defaultTimeout)
	c.Flags().Int64("query-id", 0, "of the answer")
	c.Flags().String("input", "", "the input, as for `topsail predict`; without --query-id, feedback is on the latest answer to it")
	c.Flags().String("label", "", "the correct answer: JSON or text")
	c.Flags().Float64("reward", 0, "instead of a label: how good the answer was, from 0 to 1")
	c.Flags().String("uid", "", "the user, as in the query")
	c.Flags().String("context", "", "the context, as in the query")
	return verb(c, feedback)
}

func feedback(k *call) error {
	body, err := k.judgement()
	if err != nil {
		return err
	}
	var answer struct {
		Joined    string   `json:"joined"`
		Duplicate bool     `json:"duplicate"`
		Loss      *float64 `json:"loss"`
		Trained   []any    `json:"trained"`
	}
	raw, err := k.Do(k.ctx, &answer, apiclient.Request{Method: http.MethodPost, Path: []string{k.args[0], "update"}, Body: body})
	if err != nil {
		return err
	}
	if k.format == "json" {
		return k.json(raw)
	}
	switch {
	case answer.Duplicate:
		k.say("this answer already had feedback; nothing was learned")
	case answer.Loss != nil:
		k.say("the loss was %s, and %s learned from it", screen.Number(*answer.Loss), states(len(answer.Trained)))
	default:
		k.say("the feedback is stored, and %s learned from it", states(len(answer.Trained)))
	}
	return nil
}

func states(n int) string {
	switch n {
	case 0:
		return "nothing"
	case 1:
		return "one state"
	}
	return strconv.Itoa(n) + " states"
}

// judgement is the body of the request.
func (k *call) judgement() (map[string]any, error) {
	f, body := k.cmd.Flags(), map[string]any{}
	if !f.Changed("query-id") && !f.Changed("input") {
		return nil, misused("name the answer: --query-id or --input")
	}
	if f.Changed("label") == f.Changed("reward") {
		return nil, misused("give either --label or --reward")
	}
	if f.Changed("query-id") {
		body["query_id"], _ = f.GetInt64("query-id")
	}
	if f.Changed("reward") {
		body["reward"], _ = f.GetFloat64("reward")
	}
	if f.Changed("input") {
		input, err := k.inputArg(text(k.cmd, "input"), false)
		if err != nil {
			return nil, err
		}
		body["input"] = input
	}
	if f.Changed("label") {
		label, err := parseValue([]byte(text(k.cmd, "label")))
		if err != nil {
			return nil, err
		}
		body["label"] = label
	}
	for _, name := range []string{"uid", "context"} {
		if f.Changed(name) {
			body[name] = text(k.cmd, name)
		}
	}
	return body, nil
}
