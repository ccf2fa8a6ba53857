package serving

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Role is what the holder of a key may do; each may do what those before it may, except RoleQuery,
// which is separate.
type Role string

// The roles.
const (
	RoleQuery    Role = "query"    // ask apps and give feedback, at gateways; nothing else
	RoleViewer   Role = "viewer"   // read
	RoleOperator Role = "operator" // scale, pause, drain, restart, roll back
	RoleDeployer Role = "deployer" // change apps, models, versions and artifacts
	RoleAdmin    Role = "admin"    // change keys, read the audit log
)

// ranks orders the roles of management.
var ranks = []Role{RoleViewer, RoleOperator, RoleDeployer, RoleAdmin}

// Covers says whether r may do what needed may.
func (r Role) Covers(needed Role) bool {
	if r == needed {
		return true
	}
	if needed == RoleQuery {
		return slices.Index(ranks, r) >= slices.Index(ranks, RoleOperator)
	}
	return slices.Index(ranks, r) >= slices.Index(ranks, needed) && slices.Contains(ranks, needed)
}

// Key gives its holder access. Only a hash of its secret is kept. A Key in a Catalog is immutable.
type Key struct {
	ID      string    `json:"id"` // part of the secret, to find the key by
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Apps    []string  `json:"apps,omitempty"` // for these apps only; none: for all
	Hash    []byte    `json:"hash"`           // SHA-256 of the secret
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Limit   *Limit    `json:"limit,omitempty"`

	Priority int `json:"priority,omitempty"` // the highest that its queries can have
}

// Limit is how often queries may come, at each gateway.
type Limit struct {
	PerSecond float64 `json:"per_second" required:"yes" help:"queries per second at each gateway; more are refused" flag:"limit"`
	Burst     int     `json:"burst,omitempty" help:"queries at once; 0 allows those of one second, and at least one" flag:"burst"`
}

// MaxLimit bounds limits, in queries a second.
const MaxLimit = 1e9

// MaxKeys bounds the keys of a catalog.
const MaxKeys = 10_000

const (
	secretPrefix = "topsail_" // so that scanners of source code can find what leaked
	keyIDLength  = 10
)

// NewKey makes a key without name and role, and its secret, which is to be shown once.
func NewKey() (k *Key, secret string) {
	id := strings.ToLower(rand.Text()[:keyIDLength])
	secret = secretPrefix + id + "_" + rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(secret)) // 260 random bits cannot be guessed, so a fast hash does
	return &Key{ID: id, Hash: hash[:]}, secret
}

// Key finds the key with a secret that holds now, or nil.
func (c *Catalog) Key(secret []byte, now time.Time) *Key {
	rest, ok := bytes.CutPrefix(secret, []byte(secretPrefix))
	if !ok || len(rest) <= keyIDLength || rest[keyIDLength] != '_' {
		return nil
	}
	k := c.Keys[string(rest[:keyIDLength])]
	hash := sha256.Sum256(secret)
	if k == nil || subtle.ConstantTimeCompare(hash[:], k.Hash) != 1 || k.Expired(now) {
		return nil
	}
	return k
}

// Expired says whether the key no longer holds.
func (k *Key) Expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// For says whether the key is for an app.
func (k *Key) For(app string) bool { return len(k.Apps) == 0 || slices.Contains(k.Apps, app) }

// Check returns everything that is wrong with the key alone, or nil.
func (k *Key) Check() error {
	var errs []error
	if k.Name == "" || len(k.Name) > 64 || strings.ContainsFunc(k.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		errs = append(errs, errors.New("a key needs a name of 1 to 64 bytes, without control characters"))
	}
	if len(k.ID) != keyIDLength || len(k.Hash) != sha256.Size {
		errs = append(errs, fmt.Errorf("key %q is damaged", k.Name))
	}
	if k.Role != RoleQuery && !slices.Contains(ranks, k.Role) {
		errs = append(errs, fmt.Errorf("key %q: role %q is unknown: use query, viewer, operator, deployer or admin", k.Name, k.Role))
	}
	if k.Role == RoleAdmin && len(k.Apps) > 0 {
		errs = append(errs, fmt.Errorf("key %q: the role admin covers everything; leave apps out, or use deployer", k.Name))
	}
	if len(k.Apps) > 1000 {
		errs = append(errs, fmt.Errorf("key %q: at most 1000 apps", k.Name))
	}
	for _, app := range k.Apps {
		errs = append(errs, CheckAppName(app))
	}
	for _, err := range []error{k.Limit.check(), checkPriority(k.Priority)} {
		if err != nil {
			errs = append(errs, fmt.Errorf("key %q: %w", k.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (l *Limit) check() error {
	if l == nil {
		return nil
	}
	if !(l.PerSecond > 0 && l.PerSecond <= MaxLimit) || l.Burst < 0 || l.Burst > MaxLimit {
		return fmt.Errorf("limit: per_second must be above 0 and at most %g, and burst at least 0", MaxLimit)
	}
	return nil
}
