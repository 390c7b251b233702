package api

import (
	"context"
	"net/url"
)

// Budget is a budget of calendar months. AmountMinor is in cents; thresholds are percentages of it.
type Budget struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	AmountMinor int64   `json:"amount_minor"`
	Currency    string  `json:"currency"`
	Thresholds  []int64 `json:"thresholds"`
	Action      string  `json:"action"`
	// Only of a budget that throttles.
	ThrottleBytesPerS *int64 `json:"throttle_bytes_per_s"`
	State             string `json:"state"`
	Month             string `json:"month"`
	SpentMinor        int64  `json:"spent_minor"`
	CreatedAt         string `json:"created_at"`
}

// BudgetWish is a new budget, or the change of one. A field that is nil stays as it is, or is
// chosen by the service.
type BudgetWish struct {
	Name        *string  `json:"name,omitempty"`
	AmountMinor *int64   `json:"amount_minor,omitempty"`
	Thresholds  *[]int64 `json:"thresholds,omitempty"`
	Action      *string  `json:"action,omitempty"`
	// Only of a budget that throttles.
	ThrottleBytesPerS *int64 `json:"throttle_bytes_per_s,omitempty"`
}

// Budgets reads all budgets.
func (c *Client) Budgets(ctx context.Context) ([]Budget, error) {
	return list[Budget](ctx, c, "/budgets", nil, pageOfRows)
}

// Budget reads a budget.
func (c *Client) Budget(ctx context.Context, id string) (Budget, error) {
	var budget Budget
	err := c.get(ctx, at("budgets", id), nil, &budget)
	return budget, err
}

// CreateBudget creates a budget, which counts from the beginning of the current month.
func (c *Client) CreateBudget(ctx context.Context, budget BudgetWish) (Budget, error) {
	var created Budget
	_, err := c.post(ctx, "/budgets", budget, &created)
	return created, err
}

// UpdateBudget changes a budget.
func (c *Client) UpdateBudget(ctx context.Context, id string, change BudgetWish) (Budget, error) {
	var budget Budget
	err := c.patch(ctx, at("budgets", id), change, &budget)
	return budget, err
}

// DeleteBudget deletes a budget.
func (c *Client) DeleteBudget(ctx context.Context, id string) error {
	return c.remove(ctx, at("budgets", id), nil, nil)
}

// UsageItem is the usage of one meter in one window.
type UsageItem struct {
	Meter       string  `json:"meter"`
	Unit        string  `json:"unit"`
	Quantity    Whole   `json:"quantity"`
	WindowStart string  `json:"window_start"`
	WindowEnd   string  `json:"window_end"`
	Provisional bool    `json:"provisional"`
	Billed      bool    `json:"billed"`
	ClusterID   *string `json:"cluster_id"`
	Topic       *string `json:"topic"`
	Principal   *string `json:"principal"`
}

// Usage reads usage. The query has the parameters of GET /usage.
func (c *Client) Usage(ctx context.Context, query url.Values) ([]UsageItem, error) {
	return list[UsageItem](ctx, c, "/usage", query, pageOfMetadata)
}

// Limit is a published limit. Used is nil where the service does not know it.
type Limit struct {
	Name     string `json:"name"`
	Scope    string `json:"scope"`
	Limit    int64  `json:"limit"`
	Used     *int64 `json:"used"`
	Unit     string `json:"unit"`
	Effect   string `json:"effect"`
	Raisable bool   `json:"raisable"`
}

// Limits reads all limits; with a cluster's id, the limits of that cluster have its own values.
func (c *Client) Limits(ctx context.Context, cluster string) ([]Limit, error) {
	query := url.Values{}
	if cluster != "" {
		query.Set("cluster_id", cluster)
	}
	return list[Limit](ctx, c, "/limits", query, pageOfRows)
}
