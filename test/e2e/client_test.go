package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// edge is a gateway as its clients see it.
type edge struct {
	*story
	url    string
	client *http.Client
	stop   func()
}

// post sends a body, and returns the status and what came back.
func (e *edge) post(path, body string) (status int, text string) {
	e.Helper()
	request, err := http.NewRequestWithContext(e.Context(), "POST", e.url+path, strings.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	request.Header.Set("Accept", "application/json") // else feedback is answered as Clipper does
	response, err := e.client.Do(request)
	if err != nil {
		e.Errorf("%s %s: %v", path, body, err)
		return 0, ""
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		e.Errorf("%s %s: %v", path, body, err)
	}
	return response.StatusCode, string(all)
}

// send posts a body that is to be taken, and decodes what came back.
func (e *edge) send(path, body string, into any) (text string) {
	e.Helper()
	status, text := e.post(path, body)
	if err := json.Unmarshal([]byte(text), into); err != nil || status != http.StatusOK {
		e.Errorf("%s %s: status %d, %s, %v, want 200", path, body, status, text, err)
	}
	return text
}

// answer is what a client gets for a query.
type answer struct {
	QueryID int64 `json:"query_id"`
	Output  any
	Default bool
	Missing []string
	Shed    []string
	text    string // of all, but for the id
	took    time.Duration
}

var queryID = regexp.MustCompile(`"query_id":\d+,`)

// ask wants an answer.
func (e *edge) ask(app, body string) (a answer) {
	e.Helper()
	start := time.Now()
	text := e.send(app+"/predict", body, &a)
	a.text, a.took = queryID.ReplaceAllString(text, ""), time.Since(start)
	return a
}

// wants wants an answer of models.
func (e *edge) wants(app, body, output string) answer {
	e.Helper()
	a := e.ask(app, body)
	if a.Default || a.Output != output {
		e.Errorf("%s answers %s with %s, want %q", app, body, a.text, output)
	}
	return a
}

// askAll asks a batch, and wants an answer to each input.
func (e *edge) askAll(app string, inputs []string) []answer {
	e.Helper()
	var batch struct {
		Answers []answer `json:"batch_predictions"`
	}
	e.send(app+"/predict", `{"input_batch":[`+strings.Join(inputs, ",")+`]}`, &batch)
	if len(batch.Answers) != len(inputs) {
		e.Errorf("%s gives %d answers to %d inputs", app, len(batch.Answers), len(inputs))
	}
	return batch.Answers
}

// learned is what became of feedback.
type learned struct {
	QueryID   int64 `json:"query_id"`
	Joined    string
	Duplicate bool
	Trained   []map[string]string
}

// teach wants feedback to be taken.
func (e *edge) teach(app, body string) (l learned) {
	e.Helper()
	e.send(app+"/update", body, &l)
	return l
}
