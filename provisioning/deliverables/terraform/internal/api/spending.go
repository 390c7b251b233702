package api

import (
	"context"
	"net/url"
)

// Budget of calendar months. AmountMinor is in cents, thresholds are percentages of it.
type Budget struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	AmountMinor int64   `json:"amount_minor"`
	Currency    string  `json:"currency"`
	Thresholds  []int64 `json:"thresholds"`
	Action      string  `json:"action"`
	State       string  `json:"state"`
	Month       string  `json:"month"`
	SpentMinor  int64   `json:"spent_minor"`
	CreatedAt   string  `json:"created_at"`
}

// BudgetWish is what a budget shall be. What is nil stays, or is the service's to choose.
type BudgetWish struct {
	Name        *string  `json:"name,omitempty"`
	AmountMinor *int64   `json:"amount_minor,omitempty"`
	Thresholds  *[]int64 `json:"thresholds,omitempty"`
	Action      *string  `json:"action,omitempty"`
}

// Budgets reads all of them.
func (c *Client) Budgets(ctx context.Context) ([]Budget, error) {
	return list[Budget](ctx, c, "/budgets", nil, pageOfRows)
}

// Budget reads one.
func (c *Client) Budget(ctx context.Context, id string) (Budget, error) {
	var found Budget
	err := c.get(ctx, at("budgets", id), nil, &found)
	return found, err
}

// CreateBudget sets one. It counts from the beginning of the current month.
func (c *Client) CreateBudget(ctx context.Context, wanted BudgetWish) (Budget, error) {
	var made Budget
	_, err := c.post(ctx, "/budgets", wanted, &made)
	return made, err
}

// UpdateBudget changes one.
func (c *Client) UpdateBudget(ctx context.Context, id string, change BudgetWish) (Budget, error) {
	var found Budget
	err := c.patch(ctx, at("budgets", id), change, &found)
	return found, err
}

// DeleteBudget removes one.
func (c *Client) DeleteBudget(ctx context.Context, id string) error {
	return c.remove(ctx, at("budgets", id), nil, nil)
}

// UsageItem is how much of one meter was used in one window.
type UsageItem struct {
	Meter       string  `json:"meter"`
	Unit        string  `json:"unit"`
	Quantity    int64   `json:"quantity"`
	WindowStart string  `json:"window_start"`
	WindowEnd   string  `json:"window_end"`
	Provisional bool    `json:"provisional"`
	Billed      bool    `json:"billed"`
	ClusterID   *string `json:"cluster_id"`
	Topic       *string `json:"topic"`
	Principal   *string `json:"principal"`
}

// Usage reads what was used. The query's names are those of GET /usage.
func (c *Client) Usage(ctx context.Context, query url.Values) ([]UsageItem, error) {
	return list[UsageItem](ctx, c, "/usage", query, pageOfMetadata)
}

// Limit is a published limit. Used is nil where it is not known.
type Limit struct {
	Name     string `json:"name"`
	Scope    string `json:"scope"`
	Limit    int64  `json:"limit"`
	Used     *int64 `json:"used"`
	Unit     string `json:"unit"`
	Effect   string `json:"effect"`
	Raisable bool   `json:"raisable"`
}

// Limits reads all of them; with a cluster's id, its own values.
func (c *Client) Limits(ctx context.Context, cluster string) ([]Limit, error) {
	query := url.Values{}
	if cluster != "" {
		query.Set("cluster_id", cluster)
	}
	return list[Limit](ctx, c, "/limits", query, pageOfRows)
}
