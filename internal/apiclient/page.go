package apiclient

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strconv"
)

const (
	pageSize = 1000
	maxPages = 1000 // a cursor that leads in a circle ends here
)

// List reads the items of a list, page after page, at most most of them; 0: all.
func (c *Client) List(ctx context.Context, most int, query url.Values, path ...string) ([]json.RawMessage, error) {
	all, query := []json.RawMessage{}, maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	for range maxPages {
		size := pageSize
		if most > 0 {
			size = min(size, most-len(all))
		}
		query.Set("limit", strconv.Itoa(size))
		var page struct {
			Items []json.RawMessage `json:"items"`
			Next  string            `json:"next"`
		}
		if _, err := c.Get(ctx, &page, query, path...); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if most > 0 && len(all) >= most {
			return all[:most], nil
		}
		if page.Next == "" {
			return all, nil
		}
		query.Set("cursor", page.Next)
	}
	return nil, fmt.Errorf("the list of %s does not end after %d pages", c.server, maxPages)
}
