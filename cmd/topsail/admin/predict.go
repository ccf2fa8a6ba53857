package admin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
)

func predictCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "predict APP INPUT",
		Short: "Send a query to an app, through a gateway",
		Long: "Queries an app. INPUT is JSON or text, @FILE for the contents of a file, or - for standard input. The output goes to\n" +
			"standard output; whether it is the default, why, and the time go to standard error. The gateway answers within the app's\n" +
			"SLO; without --timeout the command waits for the longest that an app can have.\n\n" +
			"With --stream, texts are printed one after another, other outputs in lines, and --timeout is for each part. Ctrl-C cancels\n" +
			"the query.",
		GroupID:           group,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: complete(appNamesBeside),
		Example: "  topsail predict wine '[14.23, 1.71, 2.43, 15.6, 127, 2.8, 3.06, 0.28, 2.29, 5.64, 1.04, 3.92, 1065]'\n" +
			"  topsail predict pictures --bytes @cat.jpg\n" +
			"  topsail predict captions '{\"image\": [[0, 255]], \"text\": \"cat\"}'\n" +
			"  topsail predict story --stream 'Once upon a time'",
	}
	gatewayFlags(c.Flags(), serving.MaxSLO+defaultTimeout)
	c.Flags().Bool("batch", false, "INPUT is a list of inputs")
	c.Flags().Bool("bytes", false, "INPUT is bytes, not JSON")
	c.Flags().Bool("stream", false, "print the answer in parts, as the model makes them; with -o json, one object per event")
	c.Flags().Bool("explain", false, "explain how the answer was made")
	c.Flags().String("uid", "", "the user, for selection")
	c.Flags().String("context", "", "what else the best model depends on")
	c.Flags().String("version", "", "a version other than the serving one")
	c.Flags().StringSlice("candidate-models", nil, "the models that the policy may choose from, such as forest,linear:2")
	c.Flags().Int("priority", 0, "a priority lower than the app's, up to 3")
	c.Flags().Duration("slo", 0, "a time limit shorter than the app's")
	return verb(c, predict)
}

// prediction is an answer of a gateway.
type prediction struct {
	Output      json.RawMessage `json:"output"`
	Default     bool            `json:"default"`
	Reason      string          `json:"default_explanation"`
	Model       string          `json:"model"` // of a policy that ranks models: which one answered
	PassedOver  []passedOver    `json:"passed_over"`
	Missing     []string        `json:"missing"`
	Shed        []string        `json:"shed"`
	Explanation json.RawMessage `json:"explanation"`
	Batch       []prediction    `json:"batch_predictions"`
}

// passedOver is a model that is ranked before the one that answered, and why it did not.
type passedOver struct{ Model, Why string }

func predict(k *call) error {
	body, err := k.query()
	if err != nil {
		return err
	}
	if k.flag("stream") {
		return predictStream(k, body)
	}
	var answer prediction
	begun := time.Now()
	raw, err := k.Do(k.ctx, &answer, apiclient.Request{Method: http.MethodPost, Path: []string{k.args[0], "predict"}, Body: body})
	took := time.Since(begun)
	if err != nil {
		return err
	}
	if k.format == "json" {
		return k.json(raw)
	}
	all := answer.Batch
	if len(all) == 0 { // of one input, as with a batch of one
		all = []prediction{answer}
	}
	for i, p := range all {
		k.say("%s", p.Output)
		number := ""
		if len(all) > 1 {
			number = fmt.Sprintf("%d: ", i+1)
		}
		for _, note := range p.notes() {
			fmt.Fprintln(k.Err, number+screen.CleanLines(note))
		}
	}
	fmt.Fprintln(k.Err, screen.Micros(max(1, took.Microseconds())))
	return nil
}

// notes describe an answer besides its output.
func (p prediction) notes() (notes []string) {
	if p.Default {
		notes = append(notes, "the default: "+p.Reason)
	}
	if p.Model != "" {
		notes = append(notes, p.Model+" answered")
	}
	for _, over := range p.PassedOver {
		notes = append(notes, over.Model+" did not answer: "+over.Why)
	}
	if len(p.Missing) > len(p.PassedOver) {
		notes = append(notes, "no answer came from "+strings.Join(p.Missing, ", "))
	}
	if len(p.Shed) > 0 {
		notes = append(notes, "not called, for lack of time or capacity: "+strings.Join(p.Shed, ", "))
	}
	if len(p.Explanation) > 0 {
		notes = append(notes, string(p.Explanation))
	}
	return notes
}

func (k *call) query() (map[string]any, error) {
	if k.flag("stream") && k.flag("batch") {
		return nil, misused("--stream takes one input: leave out --batch")
	}
	input, err := k.inputArg(k.args[1], k.flag("bytes"))
	if err != nil {
		return nil, err
	}
	body := map[string]any{"input": input}
	if k.flag("batch") {
		if k.flag("bytes") || input[0] != '[' {
			return nil, misused("--batch takes a list of inputs as JSON, such as [[1, 2], [3, 4]]")
		}
		body = map[string]any{"input_batch": input}
	}
	if k.flag("explain") {
		body["explain"] = true
	}
	for _, name := range []string{"uid", "context", "version"} {
		if v := text(k.cmd, name); v != "" {
			body[name] = v
		}
	}
	if names, _ := k.cmd.Flags().GetStringSlice("candidate-models"); len(names) > 0 {
		body["candidate_models"] = names
	}
	if priority, _ := k.cmd.Flags().GetInt("priority"); priority != 0 {
		body["priority"] = priority // the gateway says which there are
	}
	slo, _ := k.cmd.Flags().GetDuration("slo")
	if slo < 0 {
		return nil, misused("--slo must be a time above 0, such as 20ms")
	}
	if slo > 0 {
		body["slo_micros"] = slo.Microseconds()
	}
	return body, nil
}

const maxInputBytes = 64 << 20

// inputArg reads an input: JSON or plain text as it stands, of standard input for -, or of
// a file for @FILE. With raw it is the base64 of the bytes instead.
func (k *call) inputArg(arg string, raw bool) (json.RawMessage, error) {
	content := []byte(arg)
	path, isFile := strings.CutPrefix(arg, "@")
	if arg == "-" {
		path, isFile = arg, true
	}
	if isFile {
		var err error
		if content, err = k.readFile(path, maxInputBytes); err != nil {
			return nil, err
		}
	}
	if raw {
		return json.Marshal(base64.StdEncoding.EncodeToString(content))
	}
	return parseValue(content)
}

// parseValue reads JSON. Plain text that is not valid JSON is a string.
func parseValue(text []byte) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return nil, misused("the input is missing: give JSON such as [1.5, 2], text, @FILE, or - for standard input")
	}
	if json.Valid(trimmed) {
		return trimmed, nil
	}
	if !utf8.Valid(trimmed) {
		return nil, misused("the input is neither JSON nor text: use --bytes for bytes")
	}
	if strings.ContainsRune("[{\"-+.0123456789", rune(trimmed[0])) {
		return nil, misused("the input begins like JSON but is not valid JSON: %w", json.Unmarshal(trimmed, new(any)))
	}
	return json.Marshal(string(trimmed))
}
