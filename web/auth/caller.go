package auth

import (
	"context"
	"net/http"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/problem"
)

// Caller is the client of a request.
type Caller struct {
	Name   string       // of the key; "local" where there are no keys
	ID     string       // of a key in the catalog; else empty
	Role   serving.Role // empty: unknown
	Apps   []string     // for these apps only; none: for all
	From   string       // address of the client
	Client string       // program that asks, as its User-Agent says
}

// Author is the caller as the audit log names them.
func (c Caller) Author() serving.Author {
	return serving.Author{Who: c.Name, From: c.From, Client: c.Client}
}

type callerKey struct{}

// Of is the caller of a request that has gone through Guard.Handler. In any other it is unknown,
// without a role.
func Of(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// With returns ctx with a caller in it.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Unauthorized is the problem of a request without a valid key.
func Unauthorized() *problem.Problem {
	p := problem.New(http.StatusUnauthorized, "unauthorized", access.NeedKey)
	p.Header = http.Header{"Www-Authenticate": {access.Challenge}}
	return p
}

// Needs passes callers with a role on to next. It refuses keys for some apps, as what is behind it
// knows no such.
func Needs(role serving.Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch c := Of(r.Context()); {
		case c.Role == "":
			Unauthorized().Write(w)
		case !c.Role.Covers(role):
			problem.New(http.StatusForbidden, "forbidden",
				"this needs the role "+string(role)+", and the key has the role "+string(c.Role)+"; use another key").Write(w)
		case len(c.Apps) > 0:
			problem.New(http.StatusForbidden, "forbidden", "this is about everything, and the key is for some apps only; use another key").Write(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
