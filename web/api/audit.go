package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/rest"
)

func (a *api) listAudit(w http.ResponseWriter, r *http.Request) error {
	query, err := auditQuery(r)
	if err != nil {
		return err
	}
	limit := query.Limit
	query.Limit++ // to see whether there are more
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	entries, err := a.Audit.AuditLog(ctx, query)
	if err != nil {
		return err
	}
	list := rest.Page[serving.AuditEntry]{Items: append([]serving.AuditEntry{}, entries[:min(limit, len(entries))]...)}
	if len(entries) > limit {
		list.Next = rest.Cursor(entries[limit-1].ID)
	}
	return rest.Respond(w, http.StatusOK, list)
}

func auditQuery(r *http.Request) (query serving.AuditQuery, err error) {
	c, err := rest.CutOf(r)
	if err != nil {
		return serving.AuditQuery{}, err
	}
	query = serving.AuditQuery{Before: c.After, Limit: c.Limit}
	kinds := []string{"app", "model", "version", "replica", "artifact", "key", "learned", "stream", "role", "backup"}
	if query.Kind, err = rest.Choice(r, "kind", "", kinds); err != nil {
		return serving.AuditQuery{}, err
	}
	for name, into := range map[string]*string{"name": &query.Name, "who": &query.Who} {
		if *into, err = rest.Text(r, name, 1024); err != nil {
			return serving.AuditQuery{}, err
		}
	}
	return query, nil
}

// note adds what the caller has done to an object to the audit log, also if they have
// left meanwhile. Changes of the catalog are noted by its store.
func (a *api) note(r *http.Request, action, kind, name string, before, after json.RawMessage) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), within)
	defer cancel()
	caller := auth.Of(ctx)
	err := a.Audit.AddAudit(ctx, serving.AuditEntry{
		At: a.Now().UTC(), Who: caller.Name, From: caller.From, Client: caller.Client, Action: action, Kind: kind, Name: name, Before: before, After: after,
	})
	if err != nil {
		return fmt.Errorf("the change was made, but not recorded in the audit log: %w", err)
	}
	return nil
}

// maxHistory is how many changes of a model are looked at: the latest.
const maxHistory = 1000

// ModelChange is one step in the history of a model.
type ModelChange struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Action  string    `json:"action"`            // "registered", "removed", "promoted", "rolled_back" or "deleted", with the model
	Version string    `json:"version,omitempty"` // that it is about
	Before  string    `json:"before,omitempty"`  // the version that was current before
	Who     string    `json:"who"`
	From    string    `json:"from,omitempty"`
	Client  string    `json:"client,omitempty"`
}

// listHistory lists which versions of a model came, went and became current, the newest first, as far as the audit log
// reaches. It is for viewers, too, and says nothing of what the versions are.
func (a *api) listHistory(w http.ResponseWriter, r *http.Request) error {
	c, err := rest.CutOf(r)
	if err != nil {
		return err
	}
	v := a.view(r)
	m, err := v.scope.model(v.cat, r.PathValue("model"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	entries, err := a.Audit.AuditLog(ctx, serving.AuditQuery{Model: m.Name, Limit: maxHistory})
	if err != nil {
		return err
	}
	all := history(entries)
	if c.After != "" { // which may be gone from the log meanwhile
		all = slices.DeleteFunc(all, func(one ModelChange) bool { return one.ID >= c.After })
	}
	list := rest.Page[ModelChange]{Items: append([]ModelChange{}, all[:min(c.Limit, len(all))]...)}
	if len(all) > c.Limit {
		list.Next = rest.Cursor(all[c.Limit-1].ID)
	}
	return rest.Respond(w, http.StatusOK, list)
}

// history makes steps of audit entries, the newest first. A version that was current before comes back by a rollback, but
// not another one that has its name after it was deleted.
func history(entries []serving.AuditEntry) (all []ModelChange) {
	was := map[string]bool{} // current at some time, of the versions that are not deleted
	for _, e := range slices.Backward(entries) {
		one := ModelChange{ID: e.ID, At: e.At, Who: e.Who, From: e.From, Client: e.Client}
		if e.Kind == "version" {
			_, one.Version, _ = strings.Cut(e.Name, ":")
			one.Action = map[string]string{"create": "registered", "delete": "removed"}[e.Action]
			if e.Action == "delete" {
				delete(was, one.Version)
			}
			all = append(all, one)
			continue
		}
		var before, after serving.Model
		if e.Before != nil && json.Unmarshal(e.Before, &before) != nil || e.After != nil && json.Unmarshal(e.After, &after) != nil {
			continue // too large to have been kept
		}
		one.Version, one.Before = after.Current, before.Current
		was[before.Current], was[before.Previous] = true, true
		switch {
		case e.Action == "delete":
			clear(was)
			one.Action, one.Before = "deleted", ""
		case after.Current == before.Current:
			continue // another replica serves
		case was[after.Current]:
			one.Action = "rolled_back"
		default:
			one.Action = "promoted"
		}
		was[after.Current] = true
		all = append(all, one)
	}
	slices.Reverse(all)
	return all
}
