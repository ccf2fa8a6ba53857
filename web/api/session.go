package api

import (
	"net/http"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/rest"
)

// Me is the caller, and what it has reached.
type Me struct {
	Name    string       `json:"name"`
	Role    serving.Role `json:"role"`
	Apps    []string     `json:"apps,omitempty"`
	Keys    bool         `json:"keys"`
	Mode    string       `json:"mode"`
	Version string       `json:"version"`
	Gateway string       `json:"gateway,omitempty"`
}

func (a *api) me(c auth.Caller) Me {
	return Me{Name: c.Name, Role: c.Role, Apps: c.Apps, Keys: a.guard.Required(), Mode: a.Mode, Version: a.Version, Gateway: a.Gateway()}
}

func (a *api) getMe(w http.ResponseWriter, r *http.Request) error {
	return rest.Respond(w, http.StatusOK, a.me(auth.Of(r.Context())))
}

// maxSession bounds what clients without a key may send, in bytes.
const maxSession = 4 << 10

func (a *api) signIn(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Key string `json:"key" required:"yes"`
	}
	if err := rest.ReadJSON(w, r, maxSession, &body); err != nil {
		return err
	}
	caller, err := a.guard.SignIn(w, r, body.Key)
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, a.me(caller))
}

func (a *api) signOut(w http.ResponseWriter, r *http.Request) error {
	a.guard.SignOut(w, r)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
