package gateway

import (
	"context"
	"fmt"

	"github.com/topsail-serving/topsail/gateway/predict"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/kinds"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/serving"
)

// Learned reads what the policy of an app has learned for a user and a context, either
// of which may be empty. Any process that has the store and the catalog can.
func Learned(ctx context.Context, states *state.States, cat *serving.Catalog, app, user, about string) (*serving.Learning, error) {
	spec := cat.Apps[app]
	if spec == nil {
		return nil, fmt.Errorf("app %q: %w", app, serving.ErrUnknownApp)
	}
	policy, err := kinds.New(spec, nil)
	if err != nil {
		return nil, fmt.Errorf("app %q: %w", app, err)
	}
	l := &serving.Learning{App: app, Policy: spec.Policy.KindName(), User: user, Context: about, Models: []serving.ModelLearning{}}
	learner, ok := policy.(selection.Learner)
	if !ok {
		return l, nil
	}
	s, standings, err := states.Explain(ctx, state.NewApp(app, spec.Policy, learner, predict.Learned(spec, cat)), user, about)
	if err != nil {
		return nil, err
	}
	l.Steps, l.Loss, l.Regret, l.Note = s.Steps, mean(s.Loss, s.Steps), s.Regret(), s.Note
	for i := range s.Models {
		m := &s.Models[i]
		l.Models = append(l.Models, serving.ModelLearning{
			ModelID: m.ModelID, Share: standings[i].Share, Worth: standings[i].Worth, Judged: m.Asked, Loss: mean(m.Loss, m.Asked),
		})
	}
	return l, nil
}

func mean(sum, n float64) float64 {
	if n == 0 {
		return 0
	}
	return sum / n
}
