package artifact

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// addressLasts is how long the address of a bundle is good. A transfer that has begun goes on.
const addressLasts = 15 * time.Minute

// Signer is a bucket that gives addresses at which a bundle can be fetched without a key.
type Signer interface {
	Address(ctx context.Context, digest string, lasts time.Duration) (string, error)
}

// Address is where a bundle can be fetched for a while: a URL of the bucket, or what is to
// follow the path of the bundle's content here. It is empty where addresses are not signed.
func (s *Store) Address(ctx context.Context, digest string, now time.Time) (string, error) {
	if bucket, ok := s.Bucket.(Signer); ok {
		return bucket.Address(ctx, digest, addressLasts)
	}
	if s.Key == nil {
		return "", nil
	}
	expires := strconv.FormatInt(now.Add(addressLasts).Unix(), 10)
	return "?" + url.Values{"expires": {expires}, "signature": {s.sign(digest, expires)}}.Encode(), nil
}

// Signed says what is wrong with such an address of this store, or nil.
func (s *Store) Signed(digest string, query url.Values, now time.Time) error {
	expires := query.Get("expires")
	until, err := strconv.ParseInt(expires, 10, 64)
	switch {
	case err != nil || s.Key == nil || !hmac.Equal([]byte(query.Get("signature")), []byte(s.sign(digest, expires))):
		return fmt.Errorf("the address is not signed by this cluster; request a new one")
	case now.After(time.Unix(until, 0)):
		return fmt.Errorf("the address expired at %s; request a new one", time.Unix(until, 0).UTC().Format(time.RFC3339))
	}
	return nil
}

func (s *Store) sign(digest, expires string) string {
	mac := hmac.New(sha256.New, s.Key)
	fmt.Fprintf(mac, "bundle\n%s\n%s", digest, expires)
	return hex.EncodeToString(mac.Sum(nil))
}
