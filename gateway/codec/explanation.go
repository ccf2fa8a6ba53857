package codec

import (
	"math"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// appendDetails appends what Clipper's answer does not have, and most answers have
// not either.
func appendDetails(b []byte, p *serving.Prediction) []byte {
	if p.Ranked && !p.Default {
		b = appendModel(append(b, `,"model":`...), p.Model)
	}
	if len(p.PassedOver) > 0 {
		b = append(b, `,"passed_over":[`...)
		for i, over := range p.PassedOver {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendModel(append(b, `{"model":`...), over.ModelID)
			b = append(AppendString(append(b, `,"why":`...), over.Why.String()), '}')
		}
		b = append(b, ']')
	}
	if len(p.Missing) > 0 {
		b = appendModels(append(b, `,"missing":`...), p.Missing)
	}
	if len(p.Shed) > 0 {
		b = appendModels(append(b, `,"shed":`...), p.Shed)
	}
	if len(p.Failover) > 0 {
		b = appendModels(append(b, `,"failover":`...), p.Failover)
	}
	if p.Explained != nil {
		b = AppendExplanation(append(b, `,"explanation":`...), p.Explained)
	}
	return b
}

func appendModels(b []byte, ids []serving.ModelID) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendModel(b, id)
	}
	return append(b, ']')
}

// appendModel appends an id as one string.
func appendModel(b []byte, id serving.ModelID) []byte { return AppendString(b, id.String()) }

// AppendExplanation leaves out what is not known and what is not so.
func AppendExplanation(b []byte, e *serving.Explanation) []byte {
	b = AppendString(append(b, `{"policy":`...), e.Policy)
	b = AppendString(append(b, `,"ended":`...), e.Ended)
	if e.Confidence != 0 {
		b = appendNumber(append(b, `,"confidence":`...), e.Confidence)
	}
	b = appendMicros(append(b, `,"elapsed_micros":`...), e.Elapsed)
	b = appendMicros(append(b, `,"budget_micros":`...), e.Budget)
	if e.Priority != 0 {
		b = strconv.AppendInt(append(b, `,"priority":`...), int64(e.Priority), 10)
	}
	b = append(b, `,"models":[`...)
	for i := range e.Models {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendExplainedModel(b, &e.Models[i])
	}
	return append(b, ']', '}')
}

func appendExplainedModel(b []byte, m *serving.ExplainedModel) []byte {
	b = append(b, '{')
	if m.App != "" {
		b = append(AppendString(append(b, `"app":`...), m.App), ',')
	}
	if m.ModelID != (serving.ModelID{}) {
		b = append(appendModel(append(b, `"model":`...), m.ModelID), ',')
	}
	b = strconv.AppendBool(append(b, `"asked":`...), m.Asked)
	b = strconv.AppendBool(append(b, `,"answered":`...), len(m.Output) > 0)
	if len(m.Output) > 0 {
		b = append(append(b, `,"output":`...), m.Output...)
	}
	if m.Failure != "" {
		b = AppendString(append(b, `,"failure":`...), m.Failure)
	}
	if m.Probability != 0 {
		b = appendNumber(append(b, `,"probability":`...), m.Probability)
	}
	if m.Weight != 0 {
		b = appendNumber(append(b, `,"weight":`...), m.Weight)
	}
	if m.Confidence != nil {
		b = appendNumber(append(b, `,"confidence":`...), *m.Confidence)
	}
	if m.Took != 0 {
		b = appendMicros(append(b, `,"took_micros":`...), m.Took)
	}
	b = appendFlag(b, `,"cached":true`, m.Cached)
	b = appendFlag(b, `,"shadow":true`, m.Shadow)
	b = appendFlag(b, `,"shed":true`, m.Shed)
	return append(b, '}')
}

func appendFlag(b []byte, member string, set bool) []byte {
	if !set {
		return b
	}
	return append(b, member...)
}

func appendMicros(b []byte, d time.Duration) []byte {
	return strconv.AppendInt(b, d.Microseconds(), 10)
}

// appendNumber appends x, or null where JSON has no number for it.
func appendNumber(b []byte, x float64) []byte {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, x, 'g', -1, 64)
}
