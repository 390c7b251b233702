package api

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

const (
	// The page sizes of lists of rows, and of lists from a cluster's metadata, which cost the
	// service one read however long they are.
	pageOfRows     = 200
	pageOfMetadata = 2000
	// More pages than any list can have; a list that never ends is a fault of the service.
	pagesMax = 10_000
)

type page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// list reads all pages of a list.
func list[T any](
	ctx context.Context, c *Client, path string, query url.Values, limit int,
) ([]T, error) {
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", strconv.Itoa(limit))
	items := []T{}
	for range pagesMax {
		var one page[T]
		if err := c.get(ctx, path, query, &one); err != nil {
			return nil, err
		}
		items = slices.Concat(items, one.Items)
		if one.NextCursor == nil || *one.NextCursor == "" {
			break
		}
		query.Set("cursor", *one.NextCursor)
	}
	return items, nil
}
