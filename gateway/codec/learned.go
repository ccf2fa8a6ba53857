package codec

import (
	"strconv"

	"github.com/topsail-serving/topsail/serving"
)

// AppendLearned appends what became of one piece of feedback.
func AppendLearned(b []byte, l *serving.Learned) []byte {
	b = append(b, `{"received":true`...)
	if l.QueryID != 0 {
		b = strconv.AppendInt(append(b, `,"query_id":`...), l.QueryID, 10)
	}
	b = AppendString(append(b, `,"joined":`...), string(l.Joined))
	b = strconv.AppendBool(append(b, `,"duplicate":`...), l.Duplicate)
	b = appendNumber(append(b, `,"loss":`...), l.Loss)
	b = appendTrained(append(b, `,"trained":`...), l.Trained)
	b = appendLearnedModels(append(b, `,"models":`...), l.Models)
	b = strconv.AppendInt(append(b, `,"forwarded":`...), int64(l.Forwarded), 10)
	return append(b, '}')
}

// AppendLearnedBatch appends what became of a batch of feedback, in its order. A
// batch of one is a batch.
func AppendLearnedBatch(b []byte, list []serving.Learned) []byte {
	b = append(b, `{"feedback":[`...)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendLearned(b, &list[i])
	}
	return append(b, ']', '}')
}

// appendTrained writes the app's own state, which is of no user and context, as {}.
func appendTrained(b []byte, scopes []serving.StateScope) []byte {
	b = append(b, '[')
	for i, scope := range scopes {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		if scope.User != "" {
			b = AppendString(append(b, `"user":`...), scope.User)
		}
		if scope.User != "" && scope.Context != "" {
			b = append(b, ',')
		}
		if scope.Context != "" {
			b = AppendString(append(b, `"context":`...), scope.Context)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendLearnedModels leaves out the loss of a model that could not be judged.
func appendLearnedModels(b []byte, models []serving.LearnedModel) []byte {
	b = append(b, '[')
	for i := range models {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendModel(append(b, `{"model":`...), models[i].ModelID)
		if models[i].Judged {
			b = appendNumber(append(b, `,"loss":`...), models[i].Loss)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
