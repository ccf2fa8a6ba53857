package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
)

// AddDecision keeps a decision; the oldest go. It fails with ErrFenced where a
// scheduler with a higher token has written.
func (s *Store) AddDecision(ctx context.Context, d serving.Decision) error {
	b, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode the decision: %w", err)
	}
	outcome, err := s.run(ctx, s.scripts.decide, []string{s.keys.decisions, s.keys.fence}, d.Fence, keptDecisions, rand.Text(), b)
	if err != nil {
		return fmt.Errorf("keep the decision: %w", err)
	}
	if outcome == fenced {
		return fmt.Errorf("keep the decision: %w", ErrFenced)
	}
	return nil
}

// decisionPage is how many decisions are read at once.
const decisionPage = 500

// Decisions returns up to n decisions about a model version, the newest first. An
// empty version stands for all of the model, an empty model for all models.
func (s *Store) Decisions(ctx context.Context, n int, about serving.ModelID) ([]serving.Decision, error) {
	var decisions []serving.Decision
	for before := "+"; ; {
		page, err := s.decisionsBefore(ctx, before)
		if err != nil {
			return nil, fmt.Errorf("read decisions: %w", err)
		}
		for _, entry := range page {
			d, ok := decodeDecision(entry)
			if len(decisions) == n {
				return decisions, nil
			}
			if ok && d.Matches(about) {
				decisions = append(decisions, d)
			}
		}
		if len(page) < decisionPage {
			return decisions, nil
		}
		before = "(" + page[len(page)-1].ID
	}
}

func (s *Store) decisionsBefore(ctx context.Context, before string) (page []redis.XMessage, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		page, err = s.client.XRevRangeN(ctx, s.keys.decisions, before, "-", decisionPage).Result()
		return err
	})
	return page, err
}

// decodeDecision skips what it cannot read: another release may have written it.
func decodeDecision(entry redis.XMessage) (d serving.Decision, ok bool) {
	value, _ := entry.Values["decision"].(string)
	return d, json.Unmarshal([]byte(value), &d) == nil
}
