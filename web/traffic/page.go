package traffic

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"

	"github.com/topsail-serving/topsail/internal/obs"
)

// maxPage bounds a metrics page, in bytes: that of some 8,000 apps.
const maxPage = 8 << 20

// Page is a metrics page as a Source.
type Page struct {
	URL    string // of /metrics
	Key    string // is shown as X-Api-Key; empty: none
	Client *http.Client
}

// query asks for nothing but what is read here.
func query() string { return url.Values{"name[]": names(), "histograms": {"sparse"}}.Encode() }

// Read implements Source.
func (p Page) Read(ctx context.Context, readers obs.Readers) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"?"+query(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", obs.FamiliesType)
	request.Header.Set("Accept-Encoding", "identity") // packing would cost a gateway more than sending
	if p.Key != "" {
		request.Header.Set("X-Api-Key", p.Key)
	}
	resp, err := p.Client.Do(request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered with %s; do all processes have the same keys?", p.URL, resp.Status)
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != "application/vnd.google.protobuf" {
		return fmt.Errorf("%s answered with %q, not with metrics; is it the address for operators of a Topsail process?",
			p.URL, resp.Header.Get("Content-Type"))
	}
	families, err := obs.ReadFamilies(resp.Body, maxPage)
	if err == nil {
		readers.ReadFamilies(families)
	}
	return err
}
