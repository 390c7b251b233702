package api

import (
	"context"
	"net/http"
	"net/url"
)

// QuotaEntity is whom quotas are of: a user, a client id, both, or an address. A part that is nil
// is none of it; an empty one is all that have no quotas of their own.
type QuotaEntity struct {
	User     *string `json:"user"`
	ClientID *string `json:"client_id"`
	IP       *string `json:"ip"`
}

// QuotaValues are the quotas of an entity. What is nil is not limited. RequestPercentage is of the
// time of one thread.
type QuotaValues struct {
	ProduceBytesPerSecond *float64 `json:"produce_bytes_per_second"`
	FetchBytesPerSecond   *float64 `json:"fetch_bytes_per_second"`
	RequestPercentage     *float64 `json:"request_percentage"`
	Connections           *int64   `json:"connections"`
	ConnectionsPerSecond  *float64 `json:"connections_per_second"`
}

// QuotaWish is what the quotas of an entity shall be, all of them.
type QuotaWish struct {
	QuotaEntity
	QuotaValues
}

// ClientQuota is the quotas of an entity, with the id that the service derives from the entity.
type ClientQuota struct {
	ID string `json:"id"`
	QuotaEntity
	QuotaValues
}

// ClientQuotas reads those of a cluster, with one request for each 2,000.
func (c *Client) ClientQuotas(ctx context.Context, cluster string) ([]ClientQuota, error) {
	return list[ClientQuota](ctx, c, at("clusters", cluster, "quotas"), nil, pageOfMetadata)
}

// SetClientQuota gives an entity these quotas and no others. Repeating it changes nothing.
func (c *Client) SetClientQuota(
	ctx context.Context, cluster string, wanted QuotaWish,
) (ClientQuota, error) {
	var found ClientQuota
	path := at("clusters", cluster, "quotas")
	_, err := c.do(ctx, call{http.MethodPut, path, nil, wanted}, &found)
	return found, err
}

// DeleteClientQuota removes all quotas of an entity.
func (c *Client) DeleteClientQuota(ctx context.Context, cluster string, of QuotaEntity) error {
	query := url.Values{}
	for name, value := range map[string]*string{
		"user": of.User, "client_id": of.ClientID, "ip": of.IP,
	} {
		if value != nil {
			query.Set(name, *value)
		}
	}
	return c.remove(ctx, at("clusters", cluster, "quotas"), query, nil)
}
