package httpapi

import (
	"errors"
	"fmt"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/serving"
)

// caller is who sent a request, as far as it shows a key. The zero value shows none.
type caller struct {
	name  string       // of the key
	key   *serving.Key // nil: it is one of the file, which may do everything here
	limit *bucket      // of the key; nil: none
}

// wrongKeyCause is the cause of an answer to a key that does not hold.
const wrongKeyCause = "the key that was shown is not known here, has expired or was deleted: send one that holds as Authorization: Bearer KEY or as X-Api-Key: KEY, or none where none is needed"

// admit finds out who asks for an app, and refuses who may not. Where keys are needed
// for every app, who has none learns nothing of which there are.
func (s *Server) admit(rc *fasthttp.RequestCtx, app string) (caller, error) {
	who, err := s.asker(rc, app)
	if err != nil || who.key == nil {
		return who, err
	}
	if !who.key.For(app) {
		return who, s.forbid(app, fmt.Sprintf("the key %q is not for this app: use one that is, or have the app added to it", who.name))
	}
	return who, nil
}

// asker finds out who sent a request about an app, or about all if it is empty, and refuses
// whose key is for no app at all.
func (s *Server) asker(rc *fasthttp.RequestCtx, app string) (caller, error) {
	who, err := s.identify(rc, app)
	if err != nil || who.key == nil {
		return who, err
	}
	if !who.key.Role.Covers(serving.RoleQuery) {
		return who, s.forbid(app, fmt.Sprintf("the key %q has the role %s, which asks no apps: use a key with the role query", who.name, who.key.Role))
	}
	return who, nil
}

// sees says whether a caller may know of an app and ask it.
func (who *caller) sees(app *serving.App) bool {
	if *who == (caller{}) {
		return !app.RequireKey
	}
	return who.key == nil || who.key.For(app.Name)
}

// identify finds out whose key a request shows. A key that does not hold is refused
// where none is needed, too: who shows one expects that it counts.
func (s *Server) identify(rc *fasthttp.RequestCtx, app string) (caller, error) {
	a := s.admission.Load()
	if !a.checks {
		return caller{}, nil
	}
	shown := access.Shown(rc.Request.Header.Peek("X-Api-Key"), rc.Request.Header.Peek(fiber.HeaderAuthorization))
	switch {
	case len(shown) == 0 && s.config.keysNeeded():
		return caller{}, s.needKey(rc, app)
	case len(shown) == 0:
		return caller{}, nil
	}
	if key := a.catalog.Key(shown, rc.Time()); key != nil {
		return caller{key.Name, key, a.keys[key.ID]}, nil
	}
	if name, ok := s.config.Keys.Known(shown); ok {
		return caller{name: name}, nil
	}
	if _, err := s.core.App(app); errors.Is(err, serving.ErrNoCatalog) {
		return caller{}, err // the key may be in it
	}
	a.gate(app).refused()[wrongKey].Inc()
	rc.Response.Header.Set(fiber.HeaderWWWAuthenticate, access.Challenge)
	return caller{}, &refusal{fiber.StatusUnauthorized, access.Unauthorized, wrongKeyCause}
}

// needKey refuses a request that shows no key.
func (s *Server) needKey(rc *fasthttp.RequestCtx, app string) error {
	s.admission.Load().gate(app).refused()[noKey].Inc()
	rc.Response.Header.Set(fiber.HeaderWWWAuthenticate, access.Challenge)
	return &refusal{fiber.StatusUnauthorized, access.Unauthorized, access.NeedKey}
}

// forbid refuses a request whose key is good, but not for this.
func (s *Server) forbid(app, cause string) error {
	s.admission.Load().gate(app).refused()[forbidden].Inc()
	return &refusal{fiber.StatusForbidden, "Forbidden", cause}
}
