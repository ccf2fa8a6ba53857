package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

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
		At: a.Now().UTC(), Who: caller.Name, From: caller.From, Action: action, Kind: kind, Name: name, Before: before, After: after,
	})
	if err != nil {
		return fmt.Errorf("the change was made, but not recorded in the audit log: %w", err)
	}
	return nil
}
