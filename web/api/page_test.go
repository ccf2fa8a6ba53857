package api

import (
	"testing"

	"github.com/topsail-serving/topsail/web/rest"
)

func TestPagesThatAreRefused(t *testing.T) {
	w := having(t)
	for _, query := range []string{"limit=0", "limit=5001", "limit=x", "limit=1e2", "limit=-1", "cursor=%25", "cursor=a", "cursor=YQ==", "cursor=YR", "cursor=Y%0AQ"} {
		for _, path := range []string{"/apps", "/models", "/models/m/versions", "/keys", "/artifacts", "/audit"} {
			expectCode(t, w.ask("GET", path+"?"+query, ""), 400, "invalid")
		}
	}
	expect(t, w.ask("GET", "/apps?limit=1", ""), 200, `"name":"a"`, `"next":"YQ"`, "!", `"name":"b"`)
	expect(t, w.ask("GET", "/apps?limit=1&cursor=YQ", ""), 200, `"name":"b"`, "!", `"name":"a"`, `"next"`)
	expect(t, w.ask("GET", "/apps?cursor="+rest.Cursor("zz"), ""), 200, `"items":[]`)
}
