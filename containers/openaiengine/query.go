package openaiengine

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

// The paths of the engine.
const (
	chatPath       = "/v1/chat/completions"
	textPath       = "/v1/completions"
	embeddingsPath = "/v1/embeddings"
	modelsPath     = "/v1/models"
)

// query is a request of OpenAI's API, without what the container sets.
type query struct {
	path    string
	members map[string]json.RawMessage
}

// newQuery reads the request that a query's input is.
func newQuery(q *gocontainer.Query) (query, error) {
	if len(q.Inputs) != 1 || len(q.Inputs[0].Shape) > 0 || q.Inputs[0].DType != serving.String && q.Inputs[0].DType != serving.JSON {
		return query{}, gocontainer.BadInput("the input must be one text, the JSON of a request")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(q.Inputs[0].Data, &members); err != nil {
		return query{}, gocontainer.BadInput(fmt.Sprintf("the input must be the JSON object of a request: %v", err))
	}
	for _, kind := range [][2]string{{"messages", chatPath}, {"prompt", textPath}, {"input", embeddingsPath}} {
		if members[kind[0]] != nil {
			return query{kind[1], members}, nil
		}
	}
	return query{}, gocontainer.BadInput("the request has no messages, prompt or input: one of them says what is asked for")
}

// body is what the engine gets.
func (q *query) body(model string, stream bool) ([]byte, error) {
	name, err := json.Marshal(model)
	if err != nil {
		return nil, err
	}
	q.members["model"] = name
	delete(q.members, "stream")
	options := q.members["stream_options"]
	delete(q.members, "stream_options") // engines refuse it where nothing is streamed
	if q.path != embeddingsPath {
		q.members["stream"] = json.RawMessage("false")
	}
	if stream {
		q.members["stream"] = json.RawMessage("true")
		q.members["stream_options"], err = withUsage(options)
		if err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(q.members)
	return b.Bytes(), err
}

// withUsage is the options of a stream with the usage at its end.
func withUsage(options json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if len(options) > 0 {
		if err := json.Unmarshal(options, &members); err != nil {
			return nil, fmt.Errorf("stream_options must be an object: %w", err)
		}
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	members["include_usage"] = json.RawMessage("true")
	return json.Marshal(members)
}
