package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/web/rest"
)

func TestArtifacts(t *testing.T) {
	w := having(t)
	const zip = "application/zip"
	body := `{"format":1,"runtime":"python","input_type":"doubles","files":{}}`
	answer := w.ask("POST", "/artifacts", body, "Content-Type", zip)
	expect(t, answer, 201, `"used_by":[]`, `"manifest":{"format":1`)
	digest := read[Artifact](t, answer).Digest
	expect(t, w.ask("POST", "/artifacts", body, "Content-Type", zip), 200, digest)
	expectCode(t, w.ask("POST", "/artifacts", body), 415, "unsupported_type", zip)
	expectCode(t, w.ask("POST", "/artifacts", "PK broken", "Content-Type", zip), 400, "invalid", "not an archive")
	expectCode(t, w.ask("POST", "/artifacts", strings.Repeat("x", 2000), "Content-Type", zip), 413, "too_large", "1000 bytes")

	expect(t, w.ask("POST", "/models/a-model/versions", `{"version":"1","bundle":"`+digest+`"}`), 201)
	expect(t, w.ask("GET", "/artifacts/"+digest, ""), 200, `"used_by":["a-model:1"]`)
	expect(t, w.ask("GET", "/artifacts", ""), 200, `"items":[{"digest":"`+digest)
	expectCode(t, w.ask("DELETE", "/artifacts/"+digest, ""), 409, "in_use", `version \"1\" of model \"a-model\"`)
	expectCode(t, w.askBy("alice", "DELETE", "/artifacts/"+digest, ""), 403, "forbidden")

	download := w.askBy("", "GET", "/artifacts/"+digest+"/content", "")
	expect(t, download, 200)
	if download.Body.String() != body || download.Header().Get("Content-Type") != zip || !strings.HasPrefix(download.Header().Get("Content-Disposition"), "attachment;") {
		t.Errorf("got %q %v", download.Body, download.Header())
	}
	part := w.askBy("", "GET", "/artifacts/"+digest+"/content", "", "Range", "bytes=1-8")
	expect(t, part, 206)
	if part.Body.String() != body[1:9] {
		t.Errorf("got %q", part.Body)
	}

	redirected := w.askBy("", "GET", "/artifacts/"+digest+"/content?redirect=true", "")
	expect(t, redirected, 307)
	if at := redirected.Header().Get("Location"); at != "?expires=1&signature=good" {
		t.Errorf("it is sent to %q", at)
	}
	expect(t, w.askBy("", "GET", "/artifacts/"+digest+"/content?expires=1&signature=good", ""), 200)
	expectCode(t, w.askBy("", "GET", "/artifacts/"+digest+"/content?expires=1&signature=bad", ""), 403, "forbidden", "not signed")

	expect(t, w.ask("DELETE", "/models/a-model", ""), 204)
	expect(t, w.ask("DELETE", "/artifacts/"+digest, ""), 204)
	for _, name := range []string{digest, digestOf(77), "sha256:..", "..%2f..%2fetc%2fpasswd", "%00", digest + "%0a"} {
		expectCode(t, w.ask("GET", "/artifacts/"+name, ""), 404, "not_found")
		expectCode(t, w.ask("DELETE", "/artifacts/"+name, ""), 404, "not_found")
		expectCode(t, w.askBy("", "GET", "/artifacts/"+name+"/content", ""), 404, "not_found")
	}
	if after := string(w.log[0].After); after != `{"format":1,"input_type":"doubles","runtime":"python"}` {
		t.Errorf("the audit log has the manifest %s", after)
	}
	var actions []string
	for _, e := range w.log {
		actions = append(actions, e.Action+" "+e.Kind+" by "+e.Who+" from "+e.From)
	}
	if got := strings.Join(actions, ", "); got != "upload artifact by admin from 192.0.2.1, delete artifact by admin from 192.0.2.1" {
		t.Errorf("the audit log has %s", got)
	}
}

// A list ends where the manifests in it have become large, and goes on from there; what
// has been damaged is left out.
func TestListsOfLargeManifests(t *testing.T) {
	w := having(t)
	large := []byte(`{"description":"` + strings.Repeat("x", maxManifests/3) + `"}`)
	for i := range 10 {
		w.bundles[digestOf(i)] = large
	}
	w.bundles[digestOf(4)] = nil
	var got []string
	pages, next := 0, ""
	for {
		list := read[rest.Page[Artifact]](t, w.ask("GET", "/artifacts?limit=4&cursor="+next, ""))
		for _, a := range list.Items {
			got = append(got, a.Digest)
		}
		if pages++; len(list.Items) > 2 {
			t.Errorf("a page has %d", len(list.Items))
		}
		if next = list.Next; next == "" {
			break
		}
	}
	if len(got) != 9 || !slices.IsSorted(got) || slices.Contains(got, digestOf(4)) || pages > 8 {
		t.Errorf("%d pages of %q", pages, got)
	}
}
