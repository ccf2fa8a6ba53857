//go:build servers

package s3bucket

import (
	"strings"
	"testing"
)

func TestURLsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"http://bundles":                              "s3://BUCKET/PREFIX",
		"s3://":                                       "s3://BUCKET/PREFIX",
		"s3://ada:s3cret@bundles":                     "without keys",
		"s3://bundles?secret=s3cret":                  `parameter "secret"`,
		"s3://bundles?endpoint=minio:9000":            "a URL such as https://",
		"s3://bundles?endpoint=ftp://minio.example":   "a URL such as https://",
		"s3://bundles?endpoint=http://a/b/c/d%00&x=1": `parameter "x"`,
	} {
		if _, err := Open(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error is %v", text, err)
		}
	}
	b := open(t, "s3://no-bucket?endpoint="+start(t))
	if _, err := b.List(t.Context()); err == nil || !strings.Contains(err.Error(), `bucket "no-bucket" does not exist`) {
		t.Errorf("error is %v", err)
	}
}
