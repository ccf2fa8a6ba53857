package catalog

import (
	"regexp"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Hidden stands for what is secret in a version.
const Hidden = "(hidden)"

// Redact is the version without its secrets: Hidden stands for the values of its
// environment and, in the URLs that it fetches from, for users with their passwords and
// for queries, which may be signed. What has no secrets stays as it is.
func Redact(v *serving.Version) *serving.Version {
	shown := *v
	c := &shown.Container
	if len(c.Env) > 0 {
		env := make(map[string]string, len(c.Env))
		for name := range c.Env {
			env[name] = Hidden
		}
		c.Env = env
	}
	c.BundleURL = RedactURL(c.BundleURL)
	c.Artifacts = slices.Clone(c.Artifacts)
	for i := range c.Artifacts {
		c.Artifacts[i].Source = RedactURL(c.Artifacts[i].Source)
	}
	return &shown
}

// address is a URL in a text, up to a space or the end of a quotation.
var address = regexp.MustCompile(`[a-z0-9+.-]+://[^\s"\\]+`)

// RedactURLs is a text without the secrets of the URLs in it.
func RedactURLs(text string) string { return address.ReplaceAllStringFunc(text, RedactURL) }

// credentials are what a URL has in front of its host.
var credentials = regexp.MustCompile(`://[^/?#]*@`)

// RedactURL is a URL, or what Nomad's fetcher takes for one, without its secrets.
func RedactURL(url string) string {
	url = credentials.ReplaceAllString(url, "://"+Hidden+"@")
	if rest, query, has := strings.Cut(url, "?"); has && query != "" {
		return rest + "?" + Hidden
	}
	return url
}
