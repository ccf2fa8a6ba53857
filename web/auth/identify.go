package auth

import (
	"cmp"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/problem"
)

// local is the name of every caller where no keys are needed.
const local = "local"

// Config says which callers are allowed.
type Config struct {
	Keys      *access.Keys            // of a file, each for everything; nil: none
	Catalog   func() *serving.Catalog // has the other keys
	Require   bool                    // ask for keys also without a file of them
	Hosts     access.Hosts            // in addition to loopback, by which this service may be called while it needs no keys
	Encrypted bool                    // what is in front of this service speaks TLS
	Now       func() time.Time        // nil: time.Now
}

// Guard identifies callers. It may be used concurrently.
type Guard struct {
	Config
	origin *http.CrossOriginProtection
	signIn *attempts
}

// New makes a guard.
func New(config Config) *Guard {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Guard{Config: config, origin: http.NewCrossOriginProtection(), signIn: newAttempts()}
}

// Required says whether requests must show a key. Otherwise every caller may do everything.
func (g *Guard) Required() bool { return g.Keys != nil || g.Require }

// Handler puts the Caller into the context of requests for next, which refuses none by itself:
// Of(ctx) may be unknown. Refused here are an invalid key, requests from pages of another site,
// and, while no keys are asked for, a request by a name that is not ours, because a name can be
// made to point here.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.Required() && !g.Hosts.Has(r.Host) {
			problem.New(http.StatusForbidden, "host", "without keys, this service answers only at localhost and its listen address; "+
				"use one of these, or set web.keys_file").Write(w)
			return
		}
		if g.origin.Check(r) != nil {
			problem.New(http.StatusForbidden, "cross_origin", "a page of another site may not change anything here").Write(w)
			return
		}
		caller, ok := g.identify(r)
		if !ok {
			Unauthorized().Write(w)
			return
		}
		caller.From, caller.Client = addressOf(r), programOf(r)
		next.ServeHTTP(w, r.WithContext(With(r.Context(), caller)))
	})
}

// identify finds the caller. It is false for an invalid key in a header. An invalid session counts
// as none: a browser with an old cookie must be able to sign in.
func (g *Guard) identify(r *http.Request) (Caller, bool) {
	if shown := access.Shown([]byte(r.Header.Get("X-Api-Key")), []byte(r.Header.Get("Authorization"))); len(shown) > 0 {
		holder, ok := g.find(shown)
		return holder.Caller, ok
	}
	if cookie, err := r.Cookie(SessionCookie); err == nil {
		if caller, ok := g.resume(cookie.Value); ok {
			return caller, true
		}
	}
	if g.Required() {
		return Caller{}, true
	}
	return Caller{Name: local, Role: serving.RoleAdmin}, true
}

// holder is the caller with a key, how sessions name the key, and what only its verifiers know.
type holder struct {
	Caller
	key    string
	secret []byte
}

// find is the holder of the key that is shown.
func (g *Guard) find(shown []byte) (holder, bool) {
	if name, digest, ok := g.Keys.Find(shown); ok {
		return ofFile(name, digest), true
	}
	if k := g.Catalog().Key(shown, g.Now()); k != nil {
		return ofCatalog(k), true
	}
	return holder{}, false
}

func ofFile(name string, digest []byte) holder {
	return holder{Caller{Name: name, Role: serving.RoleAdmin}, fileKey + encode([]byte(name)), digest}
}

func ofCatalog(k *serving.Key) holder {
	return holder{Caller{Name: k.Name, ID: k.ID, Role: k.Role, Apps: k.Apps}, catalogKey + k.ID, k.Hash}
}

// addressOf is the address of the client, without the port.
func addressOf(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return cmp.Or(host, r.RemoteAddr)
}

// maxProgram bounds what is kept of a User-Agent, in bytes.
const maxProgram = 200

// programOf is the User-Agent as far as it is text that can be shown.
func programOf(r *http.Request) string {
	shown := strings.Map(func(c rune) rune {
		if c == utf8.RuneError || !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, r.UserAgent())
	for len(shown) > maxProgram {
		_, size := utf8.DecodeLastRuneInString(shown)
		shown = shown[:len(shown)-size]
	}
	return strings.TrimSpace(shown)
}
