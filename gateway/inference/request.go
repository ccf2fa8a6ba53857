package inference

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Request is a request for the predictions of one or several rows.
type Request struct {
	ID      string
	Options Options
	Inputs  []serving.Value // with the batch as the first dimension; texts are Blobs
	Outputs []Output        // that are wanted; none: all
}

// Options are those of a request's parameters that have a meaning here; others are tolerated.
type Options struct {
	Timeout time.Duration // timeout, in microseconds; 0: none
	Binary  bool          // binary_data_output: outputs that are not named are wanted binary
	User    string        // uid
	Context string        // context
	// Priority is 0, the highest, to serving.LowestPriority, to which larger numbers of clients come down.
	Priority int
}

// Output is an output that is wanted.
type Output struct {
	Name   string
	Binary bool
}

// Queries are the queries of a request, one for each row: copies of q with an input each. There are at
// most so many. Errors are for clients.
func (r *Request) Queries(q serving.Query, app *serving.App, most int) ([]serving.Query, error) {
	rows, err := Rows(app, Inputs(app, 0), r.Inputs, most) // of what length inputs are to be, the models say
	if err != nil {
		return nil, err
	}
	queries := make([]serving.Query, len(rows))
	for i, row := range rows {
		queries[i] = q
		queries[i].Input = row
	}
	return queries, nil
}

// InputLength is how many elements every input of an app has: the length that all versions take which
// it asks; 0: any number.
func InputLength(app *serving.App, cat *serving.Catalog) (length int) {
	models := app.Models
	if len(app.Stages) > 0 {
		models = []string{app.Stages[0].Model}
	}
	asked := app.Pins()
	for _, name := range models {
		if m := cat.Models[name]; m != nil {
			asked = append(asked, serving.ModelID{Model: name, Version: m.Current})
		}
	}
	for i, id := range asked {
		v := cat.Version(id)
		if v == nil || i > 0 && v.InputLength != length {
			return 0
		}
		length = v.InputLength
	}
	return length
}
