package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/web/problem"
)

// tags are what a header lists of entity tags.
type tags struct {
	any        bool // "*"
	tags, weak []string
}

func (t tags) given() bool { return t.any || len(t.tags)+len(t.weak) > 0 }

// parseTags reads the values of If-Match or If-None-Match.
func parseTags(values []string, header string) (t tags, err error) {
	rest := strings.Trim(strings.Join(values, ","), " \t,")
	if rest == "*" {
		return tags{any: true}, nil
	}
	for rest != "" {
		tag, weak := strings.CutPrefix(rest, "W/")
		end := strings.IndexByte(strings.TrimPrefix(tag, `"`), '"')
		if !strings.HasPrefix(tag, `"`) || end < 0 {
			return tags{}, Invalid(`%s must be "*" or a list of ETags as in answers, with their quotation marks`, header)
		}
		end += 2 // with both marks
		if weak {
			t.weak = append(t.weak, tag[:end])
		} else {
			t.tags = append(t.tags, tag[:end])
		}
		rest = strings.TrimLeft(tag[end:], " \t")
		if rest != "" && !strings.HasPrefix(rest, ",") {
			return tags{}, Invalid("%s: put a comma between two ETags", header)
		}
		rest = strings.TrimLeft(rest, " \t,")
	}
	return t, nil
}

// Condition is what a change asks of the object as it is.
type Condition struct{ match, noneMatch tags }

func ConditionOf(r *http.Request) (c Condition, err error) {
	if c.match, err = parseTags(r.Header.Values("If-Match"), "If-Match"); err != nil {
		return Condition{}, err
	}
	c.noneMatch, err = parseTags(r.Header.Values("If-None-Match"), "If-None-Match")
	return c, err
}

// Check refuses the change unless the object, which has the ETag etag, or "" where it
// does not exist, is as the client knows it.
func (c Condition) Check(etag string) error {
	has := func(list []string) bool { return slices.Contains(list, etag) }
	switch {
	case c.match.given() && etag == "":
		return Changed(etag, "it does not exist, or no longer does")
	case c.match.given() && !c.match.any && !has(c.match.tags):
		return Changed(etag, "it has changed since you read it; read it again and repeat the change")
	case etag != "" && (c.noneMatch.any || has(c.noneMatch.tags) || has(c.noneMatch.weak)):
		return Changed(etag, "it already exists")
	}
	return nil
}

// Replacing refuses to replace an object that the client may never have seen.
func (c Condition) Replacing(etag string) error {
	if etag != "" && !c.match.given() && !c.noneMatch.given() {
		p := problem.New(http.StatusPreconditionRequired, "if_match_required",
			"it already exists: send its ETag as If-Match to replace what you have read, or If-Match: * to replace whatever is there")
		p.Header = http.Header{"Etag": {etag}}
		return p
	}
	return c.Check(etag)
}

func Changed(etag, why string) error {
	p := problem.New(http.StatusPreconditionFailed, "changed", why)
	if etag != "" {
		p.Header = http.Header{"Etag": {etag}}
	}
	return p
}
