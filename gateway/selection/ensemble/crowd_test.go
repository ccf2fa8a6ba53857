package ensemble_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// classifiers are models of ten classes: each is right with a probability of its own.
type classifiers struct {
	rand   *rand.Rand
	skill  []float64
	labels []*serving.Output
}

func newClassifiers(seed uint64, skill ...float64) *classifiers {
	c := &classifiers{rand: rand.New(rand.NewPCG(seed, 1)), skill: skill}
	for digit := range 10 {
		c.labels = append(c.labels, label(fmt.Sprint(digit)))
	}
	return c
}

// predict draws what is right and what each model says.
func (c *classifiers) predict() (truth *serving.Output, said []*serving.Output) {
	digit := c.rand.IntN(10)
	for _, skill := range c.skill {
		says := digit
		if c.rand.Float64() >= skill {
			says = (digit + 1 + c.rand.IntN(9)) % 10
		}
		said = append(said, c.labels[says])
	}
	return c.labels[digit], said
}

// errors are how often a policy and each model are wrong in some rounds with feedback.
func (c *classifiers) errors(app *app, rounds int) (policy int, models []int) {
	models = make([]int, len(c.skill))
	for range rounds {
		truth, said := c.predict()
		d := app.ask(said...)
		if !selection.Same(d.Output, truth) {
			policy++
		}
		for i, o := range said {
			if !selection.Same(o, truth) {
				models[i]++
			}
		}
		app.feedback(truth, said...)
	}
	return policy, models
}

// Five models that each see a part of what there is to see do better together than
// the best of them does alone.
func TestTheCrowdBeatsItsBest(t *testing.T) {
	for _, kind := range []string{serving.PolicyVote, serving.PolicyExp4} {
		better := 0
		for seed := range uint64(10) {
			draw := rand.New(rand.NewPCG(seed, 2))
			skill := make([]float64, 5)
			for i := range skill {
				skill[i] = 0.7 + 0.2*draw.Float64()
			}
			crowd := newClassifiers(seed, skill...)
			policy, models := crowd.errors(newApp(kind, serving.PolicySpec{}, serving.OutputLabel, 5), 1500)
			if policy < slices.Min(models) {
				better++
			}
			t.Logf("%s, seed %d: %d errors, the models %v", kind, seed, policy, models)
		}
		if better < 9 {
			t.Errorf("%s is better than the best model with %d of 10 seeds", kind, better)
		}
	}
}
