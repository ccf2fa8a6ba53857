package predict

import (
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// restrict leaves those of the candidates that the query names: models, which are asked as the app
// asks them, or versions of models.
func (q *query) restrict() error {
	for _, id := range q.Candidates {
		i := slices.IndexFunc(q.app.models, func(l *linked) bool { return l.name == id.Model })
		if i < 0 {
			return &serving.QueryError{Cause: "candidate_models names " + quote(id) + ", and application " + q.app.Name + " does not link that model"}
		}
		if id.Version == "" {
			continue
		}
		v := q.app.models[i].versions[id.Version].onHost()
		if !v.takes(q.app.InputType) {
			return &serving.QueryError{Cause: "candidate_models names " + quote(id) + ", and there is no such version that takes what application " + q.app.Name + " takes"}
		}
		q.candidates, q.versions = q.app.insert(q.candidates, q.versions, v, v.ready())
	}
	kept := 0
	for i, c := range q.candidates {
		if slices.ContainsFunc(q.Candidates, func(id serving.ModelID) bool {
			return id.Model == c.Model && (id.Version == "" || id.Version == c.Version)
		}) {
			q.candidates[kept], q.versions[kept] = c, q.versions[i]
			kept++
		}
	}
	q.candidates, q.versions = q.candidates[:kept], q.versions[:kept]
	return nil
}

func quote(id serving.ModelID) string {
	if id.Version == "" {
		return id.Model
	}
	return id.String()
}
