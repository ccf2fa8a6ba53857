package codec

import (
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// updateField is a bit for each key that has a meaning.
type updateField uint16

const (
	updateUID updateField = 1 << iota
	updateContext
	updateInput
	updateQueryID
	updateLabel
	updateReward
	updateID
	updateBatch  // at the top only
	updateStrict // at the top only
)

// FeedbackMembers are the keys with a meaning.
func FeedbackMembers() []string {
	return []string{"uid", "context", "input", "query_id", "label", "reward", "feedback_id", "feedback_batch", "strict"}
}

func updateFieldOf(key []byte) updateField {
	switch string(key) {
	case "uid":
		return updateUID
	case "context":
		return updateContext
	case "input":
		return updateInput
	case "query_id":
		return updateQueryID
	case "label":
		return updateLabel
	case "reward":
		return updateReward
	case "feedback_id":
		return updateID
	case "feedback_batch":
		return updateBatch
	case "strict":
		return updateStrict
	}
	return 0
}

// member reads the value of one key into one.
func (d *updateDecoder) member(f updateField, depth int, one *serving.Feedback) (err error) {
	switch f {
	case updateUID:
		one.User, err = d.name()
	case updateContext:
		one.Context, err = d.name()
	case updateInput:
		one.Input, err = d.input(d.app)
	case updateID:
		one.ID, err = d.name()
	case updateQueryID:
		one.QueryID, err = d.queryID()
	case updateLabel:
		one.Label, err = d.label(depth)
	case updateReward:
		one.Reward, err = d.reward()
	case updateStrict, updateBatch: // within a batch they mean nothing
		if f == updateStrict && depth == 1 {
			return d.strict(&d.parser)
		}
		err = d.skip(depth)
	}
	return err
}

// complete says what is missing in an object at an offset that has the given keys, or too much.
func complete(at int, seen updateField) error {
	switch judged := seen & (updateLabel | updateReward); {
	case seen&(updateInput|updateQueryID) == 0:
		return contentError(at, `needs the key "query_id" or "input"`)
	case judged == 0:
		return contentError(at, `needs the key "label" or "reward"`)
	case judged == updateLabel|updateReward:
		return contentError(at, "has both label and reward: give one of them")
	}
	return nil
}

// queryID reads the id of an earlier answer.
func (p *parser) queryID() (int64, error) {
	c, first := p.peek(), p.i
	if !isDigit(c) {
		return 0, errQueryID(first)
	}
	n, err := p.number()
	if err != nil {
		return 0, err
	}
	if n.form != whole || n.mantissa == 0 || n.mantissa >= 1<<53 {
		return 0, errQueryID(first)
	}
	return int64(n.mantissa), nil
}

func errQueryID(at int) error {
	return contentError(at, "must be a whole number above 0 and below 2^53, as an answer had it")
}

// label reads a value of any type but null as an output, in the client's words.
func (p *parser) label(depth int) (*serving.Output, error) {
	kind, first := p.kind(), p.i
	var err error
	switch kind {
	case "Null":
		return nil, contentError(first, "must not be null")
	case "Number":
		_, err = p.float() // refuses what no number can hold
	default:
		err = p.skip(depth)
	}
	if err != nil {
		return nil, err
	}
	o, err := serving.NewOutput(serving.Value{DType: serving.JSON, Data: slices.Clone(p.b[first:p.i])})
	if err != nil {
		return nil, contentError(first, "cannot be used: %v", err)
	}
	return o, nil
}

func (p *parser) reward() (*float64, error) {
	if p.kind() != "Number" {
		return nil, p.mustBe("a number")
	}
	first := p.i
	x, err := p.float()
	if err != nil {
		return nil, err
	}
	if x < 0 || x > 1 {
		return nil, contentError(first, "must be between 0 and 1")
	}
	return &x, nil
}
