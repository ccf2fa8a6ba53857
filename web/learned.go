package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"topsail/serving"
	"topsail/web/problem"
)

// learnedWithin bounds a look into the store.
const learnedWithin = 5 * time.Second

// learned answers GET /api/v1/apps/{app}/learned?uid=…&context=…: what the app's policy
// has learned.
func learned(system System) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), learnedWithin)
		defer cancel()
		q := r.URL.Query()
		l, err := system.Learned(ctx, r.PathValue("app"), q.Get("uid"), q.Get("context"))
		switch {
		case errors.Is(err, serving.ErrUnknownApp):
			problem.Write(w, http.StatusNotFound, "Unknown app", "no app of this name is registered")
		case err != nil:
			problem.Write(w, http.StatusServiceUnavailable, "Unavailable", "what was learned cannot be read now: "+err.Error())
		default:
			respond(w, http.StatusOK, "application/json", l)
		}
	}
}

func respond(w http.ResponseWriter, status int, kind string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "the answer could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that left needs no answer
}
