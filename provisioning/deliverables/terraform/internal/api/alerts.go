package api

import "context"

// Alert tells people when a figure of a cluster stays beyond a threshold. Its unit is its kind's.
type Alert struct {
	ID        string   `json:"id"`
	ClusterID string   `json:"cluster_id"`
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Group     string   `json:"group"`
	Threshold int64    `json:"threshold"`
	ForS      int64    `json:"for_s"`
	Emails    []string `json:"emails"`
	State     string   `json:"state"`
	ChangedAt string   `json:"changed_at"`
	FiredAt   *string  `json:"fired_at"`
	Value     *int64   `json:"value"`
	Subject   string   `json:"subject"`
	CreatedAt string   `json:"created_at"`
}

// AlertWish is what an alert shall be. What is nil stays, or is the service's to choose.
type AlertWish struct {
	Name      *string   `json:"name,omitempty"`
	Group     *string   `json:"group,omitempty"`
	Threshold *int64    `json:"threshold,omitempty"`
	ForS      *int64    `json:"for_s,omitempty"`
	Emails    *[]string `json:"emails,omitempty"`
}

// NewAlert is what a new one shall be, and what never changes of it.
type NewAlert struct {
	ClusterID string `json:"cluster_id"`
	Kind      string `json:"kind"`
	AlertWish
}

// Alerts reads those of all clusters.
func (c *Client) Alerts(ctx context.Context) ([]Alert, error) {
	return list[Alert](ctx, c, "/alerts", nil, pageOfRows)
}

// CreateAlert sets one.
func (c *Client) CreateAlert(ctx context.Context, wanted NewAlert) (Alert, error) {
	var made Alert
	_, err := c.post(ctx, "/alerts", wanted, &made)
	return made, err
}

// UpdateAlert changes one; with another threshold or group it is judged anew.
func (c *Client) UpdateAlert(ctx context.Context, id string, change AlertWish) (Alert, error) {
	var found Alert
	err := c.patch(ctx, at("alerts", id), change, &found)
	return found, err
}

// DeleteAlert removes one.
func (c *Client) DeleteAlert(ctx context.Context, id string) error {
	return c.remove(ctx, at("alerts", id), nil, nil)
}
