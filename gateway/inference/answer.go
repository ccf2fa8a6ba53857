package inference

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Answer is what a request came to.
type Answer struct {
	Model, Version string // the version may be empty
	ID             string
	Parameters     []Parameter
	Outputs        []serving.Value // with the batch as the first dimension; texts are Blobs
}

// Parameter is a parameter of an answer; its value is a bool, int64, float64 or string.
type Parameter struct {
	Name  string
	Value any
}

// NoPrediction is why there is no answer: a default came in its place, and does not fit the output's type
// or is not wanted.
type NoPrediction struct {
	Cause       serving.Cause
	Explanation string
}

func (e *NoPrediction) Error() string { return e.Explanation }

// NewAnswer makes the answer of the predictions for the rows of a request. Its error is a NoPrediction,
// or about the request.
func NewAnswer(app *serving.App, request *Request, predictions []serving.Prediction) (*Answer, error) {
	if app.DefaultErrors {
		if err := firstDefault(predictions); err != nil {
			return nil, err
		}
	}
	var wanted []string
	for _, out := range request.Outputs {
		wanted = append(wanted, out.Name)
	}
	values, err := Stack(app, predictions, wanted)
	if err != nil {
		return nil, cmp.Or(firstDefault(predictions), err)
	}
	a := &Answer{Model: app.Name, ID: request.ID, Outputs: values, Parameters: Parameters(predictions)}
	if len(app.Models) == 1 {
		a.Version = predictions[0].Model.Version
	}
	return a, nil
}

// firstDefault is why the first of predictions is a default that is one, as an error; nil: none is.
func firstDefault(predictions []serving.Prediction) error {
	for i := range predictions {
		if p := &predictions[i]; p.Default {
			return &NoPrediction{p.Cause, p.Explanation}
		}
	}
	return nil
}

// Parameters are what the protocol has no place for: ids for feedback, which models answered and how sure
// they were, defaults and their reasons. Of several rows the values are joined by commas, since a parameter
// is a text, a number or a flag.
func Parameters(predictions []serving.Prediction) (list []Parameter) {
	add := func(name string, value any) { list = append(list, Parameter{name, value}) }
	if p := &predictions[0]; len(predictions) == 1 {
		if p.QueryID != 0 { // else it is a part of an answer
			add("query_id", p.QueryID)
		}
		if p.Model != (serving.ModelID{}) {
			add("model", p.Model.String())
		}
		if p.Full != nil && p.Full.Confidence != nil {
			add("confidence", *p.Full.Confidence)
		}
		if len(p.PassedOver) > 0 {
			add("passed_over", passedOver(p))
		}
		if p.Default {
			add("default", true)
			add("default_explanation", p.Explanation)
		}
		return list
	}
	var ids, models, confidences, rows []string
	var why string
	for i := range predictions {
		p, model, confidence := &predictions[i], "", ""
		if p.Model != (serving.ModelID{}) {
			model = p.Model.String()
		}
		if p.Full != nil && p.Full.Confidence != nil {
			confidence = strconv.FormatFloat(*p.Full.Confidence, 'g', -1, 64)
		}
		ids, models, confidences = append(ids, strconv.FormatInt(p.QueryID, 10)), append(models, model), append(confidences, confidence)
		if p.Default {
			rows = append(rows, strconv.Itoa(i))
			if why == "" {
				why = p.Explanation
			}
		}
	}
	add("query_ids", strings.Join(ids, ","))
	if text := strings.Join(models, ","); len(text) >= len(models) { // there are some
		add("models", text)
	}
	if text := strings.Join(confidences, ","); len(text) >= len(confidences) {
		add("confidences", text)
	}
	if len(rows) > 0 {
		add("default", true)
		add("default_rows", strings.Join(rows, ","))
		add("default_explanation", why)
	}
	return list
}

// passedOver are the models that did not answer before the one that did, such as large:1=missed_slo,mid:4=no_replica.
func passedOver(p *serving.Prediction) string {
	var list []string
	for _, over := range p.PassedOver {
		list = append(list, over.ModelID.String()+"="+over.Why.String())
	}
	return strings.Join(list, ",")
}
