package predict

import (
	"context"
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// decider asks the model that decides for an app with a custom policy.
type decider struct {
	p   *Predictor
	app string
}

// Ask implements custom.Asker.
func (d decider) Ask(ctx context.Context, model string, text []byte) ([]byte, error) {
	id, ok := d.p.Serving(d.app, model)
	if !ok {
		return nil, fmt.Errorf("model %q, which decides for app %q, has no version that can be called", model, d.app)
	}
	within := time.Second
	if at, limited := ctx.Deadline(); limited {
		within = time.Until(at)
	}
	out, _, err := d.p.Output(ctx, &serving.Query{App: d.app, Input: serving.Input{Type: serving.Strings, Data: text}, NoCache: true}, id, within)
	if err != nil {
		return nil, err
	}
	if out.Value.DType == serving.String || out.Value.DType == serving.JSON {
		return out.Value.Data, nil
	}
	return out.JSON, nil
}
