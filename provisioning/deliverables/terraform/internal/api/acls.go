package api

import (
	"context"
	"net/url"
)

// NewACL is an entry of a cluster's access control list. All of its fields together identify it.
type NewACL struct {
	Principal    string `json:"principal"`
	ResourceType string `json:"resource_type"`
	ResourceName string `json:"resource_name"`
	PatternType  string `json:"pattern_type"`
	Operation    string `json:"operation"`
	Permission   string `json:"permission"`
	Host         string `json:"host"`
}

// ACL is an existing entry, with the id that the service derives from its fields.
type ACL struct {
	ID string `json:"id"`
	NewACL
}

// ACLs reads all entries of a cluster, with one request for each 2,000.
func (c *Client) ACLs(ctx context.Context, cluster string) ([]ACL, error) {
	return list[ACL](ctx, c, at("clusters", cluster, "acls"), nil, pageOfMetadata)
}

// CreateACLs adds at most TopicsAtOnce entries, all or none. Entries that exist stay, so that
// repeating the call changes nothing.
func (c *Client) CreateACLs(ctx context.Context, cluster string, entries []NewACL) error {
	body := map[string][]NewACL{"items": entries}
	_, err := c.post(ctx, at("clusters", cluster, "acls"), body, nil)
	return err
}

// DeleteACL removes the entry that has all of these fields.
func (c *Client) DeleteACL(ctx context.Context, cluster string, entry NewACL) error {
	query := url.Values{
		"principal":     {entry.Principal},
		"resource_type": {entry.ResourceType},
		"resource_name": {entry.ResourceName},
		"pattern_type":  {entry.PatternType},
		"operation":     {entry.Operation},
		"permission":    {entry.Permission},
		"host":          {entry.Host},
	}
	return c.remove(ctx, at("clusters", cluster, "acls"), query, nil)
}
