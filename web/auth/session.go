package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/problem"
)

const (
	// SessionCookie is the name of the cookie of a session.
	SessionCookie = "topsail_session"
	// SessionLasts is how long a session lasts, if its key does not end before.
	SessionLasts = 12 * time.Hour

	fileKey    = "f-" // begins the key of a session, if it is one of the file
	catalogKey = "c-" // if it is one of the catalog
)

// A session is kept by its browser alone, as KEY.EXPIRY.MAC. The MAC is made with what is stored
// of the key, so that the session ends with the key, and no server has to remember it. A session
// of the file's keys ends with the process as well.

// SignIn begins a session for the holder of a key, or returns the problem that there is
// with it. Few wrong keys a minute are looked at for each client.
func (g *Guard) SignIn(w http.ResponseWriter, r *http.Request, key string) (Caller, error) {
	now, client := g.Now(), addressOf(r)
	if wait := g.signIn.take(client, now); wait > 0 {
		p := problem.New(http.StatusTooManyRequests, "too_many", "this address sent too many wrong keys; wait a little and try again")
		p.Header = http.Header{"Retry-After": {strconv.Itoa(int(wait/time.Second) + 1)}}
		return Caller{}, p
	}
	holder, ok := g.find([]byte(key))
	if !ok {
		return Caller{}, problem.New(http.StatusUnauthorized, "unauthorized", "the key is unknown or no longer valid; ask an administrator for another one")
	}
	g.signIn.giveBack(client)
	if !holder.Role.Covers(serving.RoleViewer) {
		return Caller{}, problem.New(http.StatusForbidden, "forbidden",
			"this key is only for queries to gateways; sign in with one that has the role viewer or more")
	}
	expiry := strconv.FormatInt(now.Add(SessionLasts).Unix(), 10)
	http.SetCookie(w, g.cookie(r, holder.key+"."+expiry+"."+encode(sign(holder, expiry)), SessionLasts))
	holder.From = client
	return holder.Caller, nil
}

// SignOut takes the session's cookie away.
func (g *Guard) SignOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, g.cookie(r, "", -time.Second))
}

func (g *Guard) cookie(r *http.Request, value string, lasts time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: SessionCookie, Value: value, Path: "/", MaxAge: int(lasts / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || g.Encrypted,
	}
}

// resume is the holder of the session of a cookie.
func (g *Guard) resume(value string) (Caller, bool) {
	key, rest, _ := strings.Cut(value, ".")
	expiry, text, _ := strings.Cut(rest, ".")
	seconds, err := strconv.ParseInt(expiry, 10, 64)
	mac, bad := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || bad != nil || !g.Now().Before(time.Unix(seconds, 0)) {
		return Caller{}, false
	}
	for _, holder := range g.holders(key) {
		if hmac.Equal(mac, sign(holder, expiry)) {
			return holder.Caller, true
		}
	}
	return Caller{}, false
}

// holders are the holders of the keys with a name: several where keys of the file share it.
func (g *Guard) holders(key string) []holder {
	if id, ok := strings.CutPrefix(key, catalogKey); ok {
		if k := g.Catalog().Keys[id]; k != nil && !k.Expired(g.Now()) {
			return []holder{ofCatalog(k)}
		}
		return nil
	}
	text, _ := strings.CutPrefix(key, fileKey)
	name, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || fileKey+encode(name) != key {
		return nil
	}
	var holders []holder
	for _, digest := range g.Keys.Digests(string(name)) {
		holders = append(holders, ofFile(string(name), digest))
	}
	return holders
}

func sign(h holder, expiry string) []byte {
	mac := hmac.New(sha256.New, h.secret)
	mac.Write([]byte("topsail session\n" + h.key + "\n" + expiry))
	return mac.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
