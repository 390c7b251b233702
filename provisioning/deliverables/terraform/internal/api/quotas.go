package api

import (
	"context"
	"net/http"
	"net/url"
)

// QuotaEntity is the entity that quotas apply to: a user, a client id, both, or an address. A part
// that is nil is not used; an empty part stands for all that have no quotas of their own.
type QuotaEntity struct {
	User     *string `json:"user"`
	ClientID *string `json:"client_id"`
	IP       *string `json:"ip"`
}

// QuotaValues are the quotas of an entity. A value that is nil is not limited. RequestPercentage is
// a percentage of the time of one thread.
type QuotaValues struct {
	ProduceBytesPerSecond *float64 `json:"produce_bytes_per_second"`
	FetchBytesPerSecond   *float64 `json:"fetch_bytes_per_second"`
	RequestPercentage     *float64 `json:"request_percentage"`
	Connections           *int64   `json:"connections"`
	ConnectionsPerSecond  *float64 `json:"connections_per_second"`
}

// QuotaWish are all quotas that an entity is to have.
type QuotaWish struct {
	QuotaEntity
	QuotaValues
}

// ClientQuota are the quotas of an entity, with the id that the service derives from the entity.
type ClientQuota struct {
	ID string `json:"id"`
	QuotaEntity
	QuotaValues
}

// ClientQuotas reads the quotas of a cluster, with one request for each 2,000 entities.
func (c *Client) ClientQuotas(ctx context.Context, cluster string) ([]ClientQuota, error) {
	return list[ClientQuota](ctx, c, at("clusters", cluster, "quotas"), nil, pageOfMetadata)
}

// SetClientQuota gives an entity exactly these quotas. Repeating it changes nothing.
func (c *Client) SetClientQuota(
	ctx context.Context, cluster string, wish QuotaWish,
) (ClientQuota, error) {
	var quota ClientQuota
	path := at("clusters", cluster, "quotas")
	_, err := c.do(ctx, call{http.MethodPut, path, nil, wish}, &quota)
	return quota, err
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
