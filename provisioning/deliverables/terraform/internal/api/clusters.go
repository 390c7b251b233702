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

// Scale is how many brokers a cluster has: Max when awake. With a Min of 1 it never sleeps.
type Scale struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// ScaleWish is a change of the scale. A field that is nil stays as it is.
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

// SpecWish is the change of a cluster's specification. A field that is nil stays as it is.
type SpecWish struct {
	IdleTimeoutS *int64      `json:"idle_timeout_s,omitempty"`
	Scale        *ScaleWish  `json:"scale,omitempty"`
	Schedules    *[]Schedule `json:"schedules,omitempty"`
}

// ClusterSpec is a cluster's specification: what it is asked to be.
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

// ClusterStatus is what a cluster was seen to be at the moment of the request.
type ClusterStatus struct {
	Phase      string      `json:"phase"`
	Conditions []Condition `json:"conditions"`
}

// Cluster is a cluster as the service shows it.
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

// NewCluster is a cluster to be created. A field that is nil is chosen by the service.
type NewCluster struct {
	Name               string            `json:"name"`
	ProjectID          *string           `json:"project_id,omitempty"`
	Region             *string           `json:"region,omitempty"`
	Labels             map[string]string `json:"labels,omitempty"`
	Spec               SpecWish          `json:"spec"`
	DeletionProtection *bool             `json:"deletion_protection,omitempty"`
}

// ClusterChange is the change of a cluster. A field that is nil stays as it is.
type ClusterChange struct {
	Name               *string            `json:"name,omitempty"`
	ProjectID          *string            `json:"project_id,omitempty"`
	Labels             *map[string]string `json:"labels,omitempty"`
	Spec               SpecWish           `json:"spec"`
	DeletionProtection *bool              `json:"deletion_protection,omitempty"`
}

// CreateCluster creates a cluster and returns when it runs. An error with an id means that the
// cluster exists all the same.
func (c *Client) CreateCluster(ctx context.Context, cluster NewCluster) (id string, err error) {
	var operation Operation
	if _, err := c.post(ctx, "/clusters", cluster, &operation); err != nil {
		return "", err
	}
	_, err = c.WaitOperation(ctx, operation.ID)
	return operation.ResourceID, err
}

// Cluster reads a cluster. One that is deleted and can still be restored has DeletedAt.
func (c *Client) Cluster(ctx context.Context, id string) (Cluster, error) {
	var cluster Cluster
	err := c.get(ctx, at("clusters", id), nil, &cluster)
	return cluster, err
}

// Clusters reads all clusters, in no particular order.
func (c *Client) Clusters(ctx context.Context) ([]Cluster, error) {
	return list[Cluster](ctx, c, "/clusters", nil, pageOfRows)
}

// UpdateCluster changes a cluster.
func (c *Client) UpdateCluster(
	ctx context.Context, id string, change ClusterChange,
) (Cluster, error) {
	var cluster Cluster
	err := c.patch(ctx, at("clusters", id), change, &cluster)
	return cluster, err
}

// DeleteCluster deletes a cluster and returns when that is done. Its name confirms the deletion.
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

// Regions reads all regions.
func (c *Client) Regions(ctx context.Context) ([]Region, error) {
	return list[Region](ctx, c, "/regions", nil, pageOfRows)
}
