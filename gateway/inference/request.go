package inference

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Request is a request for the predictions of one or several rows.
type Request struct {
	ID      string
	Options Options
	Inputs  []serving.Value // with the batch as the first dimension; texts are Blobs
	Raw     []byte          // without Inputs: the data of one row of the only input
	Around  []byte          // what may have the data of the only input as its last bytes, and is the request's to keep and write to; nil: nothing is
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
	tensors, values := Inputs(app, 0), r.Inputs // of what length inputs are to be, the models say
	if r.Raw != nil {
		only, err := whole(tensors, r.Raw)
		if err != nil {
			return nil, err
		}
		values = []serving.Value{only}
	}
	rows, err := Rows(app, tensors, values, r.Around, most)
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

// whole is the value whose data are a body: one row of the only tensor, of which the length of the body says one dimension.
// A text is the body as it is.
func whole(tensors []serving.Tensor, body []byte) (serving.Value, error) {
	if len(tensors) != 1 {
		return serving.Value{}, fmt.Errorf("the body is the data of one input alone, and the model has %s", names(tensors))
	}
	t := &tensors[0]
	v := serving.Value{Name: t.Name, DType: serving.DType(t.Type), Shape: append([]int{1}, t.Shape...), Data: body}
	each := v.DType.Size()
	if each == 0 && len(t.Shape) == 0 {
		v.Data = append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
		return v, nil
	}
	open := -1
	for i, d := range v.Shape {
		if d < 0 && open < 0 {
			open = i
		} else {
			each *= max(d, 0)
		}
	}
	if open >= 0 && each > 0 {
		v.Shape[open] = len(body) / each
		each *= v.Shape[open]
	}
	if each == 0 || each != len(body) || slices.Min(v.Shape) < 0 {
		return v, fmt.Errorf("the body is the data of input %q, and its %d bytes are not %s", t.Name, len(body), Text(v.DType, batched(t)))
	}
	return v, nil
}

// InputLength is how many elements every input of an app has: the length that all versions take which
// it asks; 0: any number.
func InputLength(app *serving.App, cat *serving.Catalog) (length int) {
	models := app.Models
	if len(app.Stages) > 0 {
		if inner := cat.Apps[app.Stages[0].App]; inner != nil {
			return InputLength(inner, cat)
		}
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
