package access

import (
	"encoding/json"
	"net/http"
)

const (
	// Challenge is the WWW-Authenticate header of an answer that asks for a key.
	Challenge = `Bearer realm="topsail"`
	// Unauthorized is the class of that answer, and NeedKey its cause.
	Unauthorized = "Unauthorized"
	NeedKey      = "this needs a valid key: send it as Authorization: Bearer KEY or as X-Api-Key: KEY"
)

// Handler asks for a key before next. A nil *Keys returns next itself.
func (k *Keys) Handler(next http.Handler) http.Handler {
	if k == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := k.Check([]byte(r.Header.Get("X-Api-Key")), []byte(r.Header.Get("Authorization"))); ok {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", Challenge)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		// A client that left needs no answer.
		_ = json.NewEncoder(w).Encode(map[string]string{"error": Unauthorized, "cause": NeedKey})
	})
}
