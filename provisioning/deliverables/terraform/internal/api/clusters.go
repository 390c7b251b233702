package api

import (
	"context"
	"net/url"
)

// Condition is one fact about a resource. Status is true, false or unknown.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Scale bounds the number of a cluster's brokers.
type Scale struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// ScaleWish is what the bounds shall be. What is nil stays.
type ScaleWish struct {
	Min *int64 `json:"min,omitempty"`
	Max *int64 `json:"max,omitempty"`
}

// Schedule is a time of the week in which a cluster does not sleep.
type Schedule struct {
	Days     []string `json:"days"`
	Start    string   `json:"start"`
	End      string   `json:"end"`
	TimeZone string   `json:"time_zone,omitempty"`
}

// SpecWish is what of a cluster's spec can be chosen. What is nil stays.
type SpecWish struct {
	IdleTimeoutS *int64      `json:"idle_timeout_s,omitempty"`
	Scale        *ScaleWish  `json:"scale,omitempty"`
	Schedules    *[]Schedule `json:"schedules,omitempty"`
}

// ClusterSpec is what is wanted of a cluster.
type ClusterSpec struct {
	IdleTimeoutS int64      `json:"idle_timeout_s"`
	Scale        Scale      `json:"scale"`
	Schedules    []Schedule `json:"schedules"`
}

// Endpoint is one way for clients to connect.
type Endpoint struct {
	Listener         string `json:"listener"`
	BootstrapServers string `json:"bootstrap_servers"`
}

// ClusterStatus is what is observed of a cluster at the moment of the request.
type ClusterStatus struct {
	Phase      string      `json:"phase"`
	Conditions []Condition `json:"conditions"`
}

// Cluster as the service shows it.
type Cluster struct {
	ID                 string            `json:"id"`
	Name               string            `json:"name"`
	ProjectID          string            `json:"project_id"`
	Region             string            `json:"region"`
	Labels             map[string]string `json:"labels"`
	DeletionProtection bool              `json:"deletion_protection"`
	DeletedAt          *string           `json:"deleted_at"`
	CreatedAt          string            `json:"created_at"`
	Spec               ClusterSpec       `json:"spec"`
	BootstrapServers   string            `json:"bootstrap_servers"`
	Endpoints          []Endpoint        `json:"endpoints"`
	Status             ClusterStatus     `json:"status"`
}

// NewCluster is what a cluster shall be. What is nil is the service's to choose.
type NewCluster struct {
	Name               string            `json:"name"`
	ProjectID          *string           `json:"project_id,omitempty"`
	Region             *string           `json:"region,omitempty"`
	Labels             map[string]string `json:"labels,omitempty"`
	Spec               SpecWish          `json:"spec"`
	DeletionProtection *bool             `json:"deletion_protection,omitempty"`
}

// ClusterChange is what changes of a cluster. What is nil stays.
type ClusterChange struct {
	Name               *string            `json:"name,omitempty"`
	ProjectID          *string            `json:"project_id,omitempty"`
	Labels             *map[string]string `json:"labels,omitempty"`
	Spec               SpecWish           `json:"spec"`
	DeletionProtection *bool              `json:"deletion_protection,omitempty"`
}

// CreateCluster returns when the cluster runs. With an error and an id it exists all the same.
func (c *Client) CreateCluster(ctx context.Context, wanted NewCluster) (id string, err error) {
	var operation Operation
	if _, err := c.post(ctx, "/clusters", wanted, &operation); err != nil {
		return "", err
	}
	_, err = c.WaitOperation(ctx, operation.ID)
	return operation.ResourceID, err
}

// Cluster reads one. A deleted one that can still be restored is found, with DeletedAt.
func (c *Client) Cluster(ctx context.Context, id string) (Cluster, error) {
	var found Cluster
	err := c.get(ctx, at("clusters", id), nil, &found)
	return found, err
}

// Clusters reads all of them, in no order that means anything.
func (c *Client) Clusters(ctx context.Context) ([]Cluster, error) {
	return list[Cluster](ctx, c, "/clusters", nil, pageOfRows)
}

// UpdateCluster changes one.
func (c *Client) UpdateCluster(
	ctx context.Context, id string, change ClusterChange,
) (Cluster, error) {
	var found Cluster
	err := c.patch(ctx, at("clusters", id), change, &found)
	return found, err
}

// DeleteCluster returns when the cluster is deleted. Its name confirms it.
func (c *Client) DeleteCluster(ctx context.Context, id, name string) error {
	var operation Operation
	err := c.remove(ctx, at("clusters", id), url.Values{"name": {name}}, &operation)
	if HasCode(err, "cluster_deleted") {
		return nil
	}
	if err != nil || operation.ID == "" {
		return err
	}
	_, err = c.WaitOperation(ctx, operation.ID)
	return err
}

// Region is a place that clusters can be created in.
type Region struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Regions reads all of them.
func (c *Client) Regions(ctx context.Context) ([]Region, error) {
	return list[Region](ctx, c, "/regions", nil, pageOfRows)
}
