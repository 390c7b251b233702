package api

import "context"

// Alert sends mails when a figure of a cluster stays above a threshold. Its kind decides which
// figure, and the unit of the threshold.
type Alert struct {
	ID        string   `json:"id"`
	ClusterID string   `json:"cluster_id"`
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Group     string   `json:"group"`
	Threshold Int64    `json:"threshold"`
	ForS      int64    `json:"for_s"`
	Emails    []string `json:"emails"`
	State     string   `json:"state"`
	ChangedAt string   `json:"changed_at"`
	FiredAt   *string  `json:"fired_at"`
	Value     *Int64   `json:"value"`
	Subject   string   `json:"subject"`
	CreatedAt string   `json:"created_at"`
}

// AlertWish is the part of an alert that can change. A field that is nil stays as it is, or is
// chosen by the service.
type AlertWish struct {
	Name      *string   `json:"name,omitempty"`
	Group     *string   `json:"group,omitempty"`
	Threshold *Int64    `json:"threshold,omitempty"`
	ForS      *int64    `json:"for_s,omitempty"`
	Emails    *[]string `json:"emails,omitempty"`
}

// NewAlert is an alert to be created. ClusterID and Kind never change.
type NewAlert struct {
	ClusterID string `json:"cluster_id"`
	Kind      string `json:"kind"`
	AlertWish
}

// Alerts reads the alerts of all clusters.
func (c *Client) Alerts(ctx context.Context) ([]Alert, error) {
	return list[Alert](ctx, c, "/alerts", nil, pageOfRows)
}

// CreateAlert creates an alert.
func (c *Client) CreateAlert(ctx context.Context, alert NewAlert) (Alert, error) {
	var created Alert
	_, err := c.post(ctx, "/alerts", alert, &created)
	return created, err
}

// UpdateAlert changes an alert. With another threshold or group its state begins anew.
func (c *Client) UpdateAlert(ctx context.Context, id string, change AlertWish) (Alert, error) {
	var alert Alert
	err := c.patch(ctx, at("alerts", id), change, &alert)
	return alert, err
}

// DeleteAlert deletes an alert.
func (c *Client) DeleteAlert(ctx context.Context, id string) error {
	return c.remove(ctx, at("alerts", id), nil, nil)
}
